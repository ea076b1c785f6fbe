"""Cases from the field that need more than a row of `test_saving.py` or `test_refusals.py`; CASES.md lists them all."""

from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path

import pytest
from anthropic.tools import BetaLocalFilesystemMemoryTool

from mounts import Store, sh, start_session, until

HERE = Path(__file__).parent


def test_a_move_that_must_not_replace_replaces_nothing(store, new_mount):
    store.fill({"/a.md": "A\n", "/b.md": "B\n"})
    mnt = new_mount("--store", store.id).target
    sh('mv -n "$MNT/a.md" "$MNT/b.md"', MNT=mnt)
    assert store.texts() == {"/a.md": "A\n", "/b.md": "B\n"}
    assert len(store.versions()) == 2


def test_the_memory_tool_of_the_sdk_works_on_a_mount(store, mnt):
    tool = BetaLocalFilesystemMemoryTool(base_path=str(mnt))
    tool.call({"command": "create", "path": "/memories/todo.md", "file_text": "- milk\n"})
    tool.call({"command": "str_replace", "path": "/memories/todo.md", "old_str": "milk", "new_str": "bread"})
    tool.call({"command": "insert", "path": "/memories/todo.md", "insert_line": 1, "insert_text": "- eggs"})
    tool.call({"command": "rename", "old_path": "/memories/todo.md", "new_path": "/memories/list.md"})
    assert store.texts() == {"/memories/list.md": "- bread\n- eggs\n"}
    (memory,) = store.ids().values()
    assert store.operations(memory) == ["created", "modified", "modified", "modified"]
    assert len(store.versions()) == 4, "no other file was ever a memory"


def test_what_is_replaced_here_stays_readable_where_it_is_open(store, new_mount, tmp_path):
    store.put("/a.md", "old\n")
    mnt = new_mount("--store", store.id).target
    script = 'exec 3<"$MNT/a.md"; echo new > "$T/x"; cp "$T/x" "$MNT/new.md"; mv "$MNT/new.md" "$MNT/a.md"; cat <&3; exec 3<&-; cat "$MNT/a.md"'
    assert sh(script, MNT=mnt, T=tmp_path).ok() == "old\nnew\n"


def test_a_cut_character_is_refused_at_close(store, mnt):
    fd = os.open(mnt / "cut.md", os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(fd, b"abc\xc3")
    with pytest.raises(OSError) as error:
        os.close(fd)
    assert error.value.errno == errno.EILSEQ
    assert store.texts() == {}


def test_a_directory_made_elsewhere_meanwhile_refuses_the_file(store, mnt):
    fd = os.open(mnt / "a", os.O_CREAT | os.O_WRONLY, 0o644)
    store.put("/a/b.md", "first\n")
    time.sleep(0.5)
    os.write(fd, b"x\n")
    with pytest.raises(OSError) as error:
        os.close(fd)
    assert error.value.errno == errno.EISDIR
    assert store.texts() == {"/a/b.md": "first\n"}


def test_a_decomposed_name_is_neither_found_nor_made(store, new_mount):
    store.put("/caf\u00e9.md", "6\n")
    mnt = new_mount("--store", store.id).target
    assert (mnt / "caf\u00e9.md").read_text() == "6\n"
    with pytest.raises(FileNotFoundError):
        (mnt / "cafe\u0301.md").read_text()
    with pytest.raises(OSError) as error:
        (mnt / "cafe\u0301.md").write_text("x\n")
    assert error.value.errno == errno.EINVAL
    assert os.listdir(mnt) == ["caf\u00e9.md"]


def test_what_was_brought_back_elsewhere_is_there_again(store, new_mount, wire):
    memory = store.put("/a.md", "A\n")
    mnt = new_mount("--store", store.id).target
    os.remove(mnt / "a.md")
    (made, _) = store.versions(memory)
    old = wire("GET", f"{store.route}/memory_versions/{made['id']}").ok()
    store.put("/a.md", old["content"])
    assert until(lambda: os.path.exists(mnt / "a.md"))
    assert (mnt / "a.md").read_text() == "A\n"


def test_what_one_session_destroyed_is_found_and_can_be_undone(new_mount, wire, home):
    store = Store(wire)
    text = "x" * 5_999 + "\n"
    memory = store.put("/notes/big.md", text)
    session = start_session(wire, store)
    (resource,) = session["resources"]
    parent = home / "memory"
    point = parent / Path(resource["mount_path"]).name
    new_mount("--session", session["id"], target=parent, points=[point])
    sh('echo stub > "$MNT/notes/big.md"', MNT=point).ok()
    found = wire("GET", f"{store.route}/memory_versions?session_id={session['id']}").ok()["data"]
    assert [(v["operation"], v["created_by"]["type"], v["created_by"]["session_id"]) for v in found] == [
        ("modified", "session_actor", session["id"])
    ]
    before = wire("GET", f"{store.route}/memory_versions/{store.versions(memory)[0]['id']}").ok()
    assert before["content"] == text and before["content_size_bytes"] == 6_000


def test_the_table_of_cases_names_tests_that_are_there():
    rows = re.findall(r"^\| ([A-Z]{2}-\d\d) \| (.*?) \| (.*?) ?\|$", (HERE / "CASES.md").read_text(), re.MULTILINE)
    assert len(rows) > 60
    for case, tests, reason in rows:
        assert tests or reason, case
        for file, name, row in re.findall(r"`(test_\w+\.py)::(test_\w+)(?:\[([^\]]+)\])?`", tests):
            source = (HERE / file).read_text()
            assert f"def {name}(" in source, f"{case}: {name}"
            assert not row or f'"{row}":' in source, f"{case}: {row}"
