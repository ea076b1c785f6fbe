"""`stele sync`: a folder and a store that are kept the same, without FUSE."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from kit.server import STELE_BIN, clean_env
from mounts import Run, Store, sh, start_session, until, wire_of
from relay import Relay

OWN = ".stele-sync"


class Folder:
    def __init__(self, home: Path, server, store: Store, name: str = "folder", **options) -> None:
        self.dir, self.store, self.home = home / name, store, home
        self.env = {"STELE_URL": options.get("url") or server.url, "STELE_API_KEY": options.get("key") or server.admin_key}
        self.what = options.get("what") or ["--store", store.id]

    def command(self, *args: str) -> list[str]:
        return [str(STELE_BIN), "sync", *self.what, str(self.dir), *args]

    def sync(self, *args: str, exit: int = 0, timeout: float = 60) -> Run:
        run = Run(self.command(*args), env=clean_env(self.home, self.env), cwd="/", timeout=timeout)
        assert run.exit == exit, run
        return run

    def watch(self) -> Watcher:
        return Watcher(self)

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.dir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def files(self) -> dict[str, str]:
        """What lies in the folder, but for Stele's own."""
        found = {}
        for file in sorted(self.dir.rglob("*")):
            relative = file.relative_to(self.dir)
            if file.is_file() and not file.is_symlink() and relative.parts[0] != OWN:
                found[f"/{relative}"] = file.read_text(errors="replace")
        return found

    def aside(self) -> list[str]:
        kept = self.dir / OWN / "displaced"
        return sorted(file.read_text() for file in kept.iterdir()) if kept.exists() else []


class Watcher:
    def __init__(self, folder: Folder) -> None:
        self.process = subprocess.Popen(
            folder.command("--watch"), env=clean_env(folder.home, folder.env), cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

    def __enter__(self) -> Watcher:
        return self

    def stop(self) -> str:
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=60)
        return said

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def new_folder(home, server, store):
    return lambda name="folder", of=None, **options: Folder(home, server, of or store, name, **options)


@pytest.fixture
def folder(new_folder) -> Folder:
    return new_folder()


def test_a_store_arrives_whole_and_byte_for_byte(store, folder):
    texts = {f"/d{k % 7}/{k:03}.md": f"{k} é\r\n" * (k * 20 + 1) for k in range(120)} | {"/empty.md": "", "/bom.md": "\ufeffx"}
    store.fill(texts)
    assert "122 pulled" in folder.sync().out
    assert {path: (folder.dir / path[1:]).read_bytes() for path in texts} == {p: t.encode() for p, t in texts.items()}
    assert "122 the same" in folder.sync().out


def test_every_row_of_the_workers_table(store, folder):
    ids = store.fill({f"/{name}.md": "base\n" for name in ("theirs", "mine", "both", "same", "gone", "dropped", "kept", "risen")})
    folder.sync()
    for name, text in (("theirs", "theirs\n"), ("both", "theirs\n"), ("same", "same\n"), ("kept", "theirs\n")):
        store.edit(ids[f"/{name}.md"], content=text)
    for name in ("dropped", "risen"):
        store.drop(ids[f"/{name}.md"])
    store.put("/new-there.md", "there\n")
    for name, text in (("mine", "mine\n"), ("both", "mine\n"), ("same", "same\n"), ("risen", "edited\n"), ("new-here", "here\n")):
        folder.write(f"{name}.md", text)
    for name in ("gone", "kept"):
        (folder.dir / f"{name}.md").unlink()
    run = folder.sync(exit=4)
    assert "changed on both sides" in run.err and "/both.md" in run.err
    expected = {
        "/theirs.md": "theirs\n", "/mine.md": "mine\n", "/both.md": "theirs\n", "/same.md": "same\n", "/kept.md": "theirs\n",
        "/risen.md": "edited\n", "/new-here.md": "here\n", "/new-there.md": "there\n",
    }
    assert folder.files() == expected and store.texts() == expected
    assert folder.aside() == ["mine\n"], "the local text that gave way is kept"
    assert store.operations(ids["/mine.md"]) == ["created", "modified"]
    assert "8 the same" in folder.sync().out


def test_a_dry_run_changes_nothing(store, folder):
    store.put("/a.md", "a\n")
    assert "would pull" in folder.sync("--dry-run").out
    assert not folder.dir.exists()
    folder.sync()
    folder.write("b.md", "b\n")
    (folder.dir / "a.md").unlink()
    before = sorted((p, p.stat().st_mtime_ns) for p in folder.dir.rglob("*"))
    run = folder.sync("-n")
    assert "would create" in run.out and "would delete in the store" in run.out
    assert store.texts() == {"/a.md": "a\n"}
    assert sorted((p, p.stat().st_mtime_ns) for p in folder.dir.rglob("*")) == before


def test_a_moved_file_moves_its_memory(store, folder):
    ids = store.fill({"/old.md": "text\n"})
    folder.sync()
    (folder.dir / "deep").mkdir()
    (folder.dir / "old.md").rename(folder.dir / "deep/new.md")
    folder.sync()
    assert store.ids() == {"/deep/new.md": ids["/old.md"]}
    assert store.operations() == ["created", "modified"]


def test_a_move_and_a_deletion_of_all_that_there_is_are_no_wipe(store, folder):
    store.fill({"/a.md": "a\n", "/b.md": "b\n"})
    folder.sync()
    (folder.dir / "a.md").rename(folder.dir / "c.md")
    (folder.dir / "b.md").unlink()
    folder.sync()
    assert store.texts() == folder.files() == {"/c.md": "a\n"}


def test_an_emptied_folder_does_not_empty_the_store(store, folder):
    texts = {f"/{k}.md": f"{k}\n" for k in range(20)}
    store.fill(texts)
    folder.sync()
    for file in folder.dir.glob("*.md"):
        file.unlink()
    folder.sync()
    assert store.texts() == texts and folder.files() == texts


def test_of_many_deletions_some_wait_unless_all_are_wanted(store, folder):
    store.fill({f"/{k:02}.md": f"{k}\n" for k in range(40)})
    folder.sync()
    for k in range(30):
        (folder.dir / f"{k:02}.md").unlink()
    run = folder.sync(exit=4)
    assert "10 deleted in the store" in run.out and "--delete-all" in run.err
    assert len(store.texts()) == 30
    assert "20 deleted in the store" in folder.sync("--delete-all").out
    assert len(store.texts()) == 10


def test_a_read_only_store_is_pulled_only(store, new_folder):
    ids = store.fill({"/a.md": "a\n", "/b.md": "b\n", "/c.md": "c\n"})
    folder = new_folder(what=["--store", f"{store.id}:ro"])
    folder.sync()
    (folder.dir / "b.md").unlink()
    (folder.dir / "a.md").unlink()
    folder.write("a.md", "edited\n")
    folder.write("new.md", "new\n")
    store.edit(ids["/c.md"], content="theirs\n")
    run = folder.sync(exit=5)
    assert run.err.count("the store is read-only") == 2
    assert folder.files() == {"/a.md": "edited\n", "/b.md": "b\n", "/c.md": "theirs\n", "/new.md": "new\n"}
    assert len(store.versions()) == 4


def test_a_folder_with_files_is_taken_in_only_when_asked(store, folder):
    store.fill({"/there.md": "there\n", "/both.md": "theirs\n"})
    folder.write("here.md", "here\n")
    folder.write("both.md", "mine\n")
    assert "--adopt" in folder.sync(exit=4).err
    assert store.texts() == {"/there.md": "there\n", "/both.md": "theirs\n"}
    folder.sync("--adopt", exit=4)
    assert folder.files() == store.texts() == {"/there.md": "there\n", "/both.md": "theirs\n", "/here.md": "here\n"}
    assert folder.aside() == ["mine\n"]


def test_a_folder_is_of_one_store(wire, store, folder, new_folder):
    folder.sync()
    other = new_folder(of=Store(wire))
    assert "is the folder of the store" in other.sync(exit=4).err


def test_nothing_follows_links_or_leaves_the_folder(store, folder, home):
    ids = store.fill({"/d/a.md": "a\n", "/l.md": "l\n"})
    folder.sync()
    outside = home / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret\n")
    (folder.dir / "d/a.md").unlink()
    (folder.dir / "d").rmdir()
    (folder.dir / "d").symlink_to(outside)
    (folder.dir / "l.md").unlink()
    (folder.dir / "l.md").symlink_to(outside / "secret.md")
    store.edit(ids["/d/a.md"], content="new\n")
    store.edit(ids["/l.md"], content="new\n")
    os.mkfifo(folder.dir / "pipe.md")
    run = folder.sync(exit=5)
    assert "symbolic link" in run.err
    assert [p.name for p in outside.iterdir()] == ["secret.md"] and (outside / "secret.md").read_text() == "secret\n"
    assert "secret\n" not in store.texts().values()


def test_what_cannot_be_a_memory_stays_here_and_is_named(store, folder):
    folder.sync()
    folder.write("big.md", b"x" * 102_401)
    folder.write("nul.bin", b"a\0b")
    folder.write("latin.txt", b"\xff")
    folder.write("bad\u200bname.md", "x")
    folder.write("ok.md", "ok\n")
    for scratch in (".ok.md.swp", "ok.md~", "4913", ".#ok.md", "fresh.tmp", ".git/config", ".anthropic-memory-store"):
        folder.write(scratch, "scratch\n")
    run = folder.sync(exit=5)
    assert len(run.err.splitlines()) == 5, run
    assert store.texts() == {"/ok.md": "ok\n"}
    folder.write("big.md", b"x" * 10)
    folder.sync(exit=5)
    assert sorted(store.texts()) == ["/big.md", "/ok.md"]


def test_what_the_server_refuses_is_sent_once(fresh_server, home):
    own = fresh_server(env={"STELE_MAX_MEMORIES_PER_STORE": "2"})
    store, relay = Store(wire_of(own)), Relay(own.port)
    folder = Folder(home, own, store, url=relay.url)
    try:
        folder.sync()
        for name in "abc":
            folder.write(f"{name}.md", name)
        assert "refused by the server" in folder.sync(exit=5).err
        assert len(store.texts()) == 2
        relay.requests.clear()
        folder.sync(exit=5)
        assert {line.split()[0] for line in relay.requests} == {"GET"}, "not sent again until it changes"
    finally:
        relay.close()


def test_an_upload_whose_answer_was_lost_is_done_once(store, new_folder, server):
    ids, relay = store.fill({"/a.md": "base\n"}), Relay(server.port)
    folder = new_folder(url=relay.url)
    try:
        folder.sync()
        folder.write("a.md", "mine\n")
        folder.write("new.md", "new\n")
        relay.set("lose answers")
        folder.sync(exit=7)
        relay.set("open")
        folder.sync()
    finally:
        relay.close()
    assert store.texts() == {"/a.md": "mine\n", "/new.md": "new\n"}
    assert store.operations(ids["/a.md"]) == ["created", "modified"]
    assert len(store.versions()) == 3


@pytest.mark.parametrize("answer", [500, 429, 401])
def test_trouble_with_the_server_changes_nothing(store, new_folder, server, answer):
    store.fill({"/a.md": "a\n", "/b.md": "b\n"})
    relay = Relay(server.port)
    folder = new_folder(url=relay.url)
    try:
        folder.sync()
        folder.write("c.md", "c\n")
        (folder.dir / "a.md").unlink()
        relay.set(answer)
        folder.sync(exit=6 if answer == 401 else 8)
        assert folder.files() == {"/b.md": "b\n", "/c.md": "c\n"}
        relay.set("open")
        folder.sync()
    finally:
        relay.close()
    assert store.texts() == {"/b.md": "b\n", "/c.md": "c\n"}


def test_a_deleted_store_and_an_empty_server_take_no_file_away(wire, store, folder, new_folder, fresh_server):
    store.fill({"/a.md": "a\n", "/b.md": "b\n"})
    folder.sync()
    stranger = fresh_server()
    elsewhere = new_folder(url=stranger.url, key=stranger.admin_key)
    assert elsewhere.sync(exit=3).err
    assert folder.files() == {"/a.md": "a\n", "/b.md": "b\n"}
    wire("DELETE", f"/v1/memory_stores/{store.id}").ok()
    folder.sync(exit=3)
    assert folder.files() == {"/a.md": "a\n", "/b.md": "b\n"}


def test_a_restored_server_takes_nothing_that_it_does_not_know(fresh_server, home):
    own = fresh_server()
    store = Store(wire_of(own))
    ids = store.fill({"/a.md": "a\n"})
    folder = Folder(home, own, store)
    folder.sync()
    env = {"STELE_URL": own.url, "STELE_API_KEY": own.admin_key}

    def stele(*args: str) -> str:
        return Run([str(STELE_BIN), *args, "--data-dir", str(own.data_dir)], env=clean_env(own.home, env), cwd=own.home).ok()

    stele("backup", "create", "--to", str(home / "backups"))
    (backup,) = (home / "backups").iterdir()
    folder.write("after.md", "written after the backup\n")
    folder.sync()
    store.edit(ids["/a.md"], content="changed after the backup\n")
    folder.sync()
    own.stop()
    stele("restore", str(backup), "--yes")
    own.start()
    folder.sync(exit=4)
    assert folder.files() == store.texts() == {"/a.md": "a\n", "/after.md": "written after the backup\n"}
    assert folder.aside() == ["changed after the backup\n"]


def test_a_session_syncs_its_stores_by_its_token_alone(wire, home, server, new_folder):
    one, two = Store(wire, "Sync One"), Store(wire, "Sync Two")
    one.put("/a.md", "a\n")
    session = start_session(wire, one, two)
    names = [Path(r["mount_path"]).name for r in session["resources"]]
    both = new_folder(what=["--session", session["id"]])
    both.sync()
    assert sorted(p.name for p in both.dir.iterdir()) == sorted(names)
    (both.dir / names[1] / "b.md").write_text("b\n")
    both.sync()
    assert two.texts() == {"/b.md": "b\n"}
    (version,) = two.versions()
    assert version["created_by"]["type"] == "session_actor"


def test_a_killed_sync_loses_and_doubles_nothing(store, folder):
    texts = {f"/d{k % 9}/{k}.md": f"{k}\n" * 50 for k in range(600)}
    folder.sync()
    for path, text in texts.items():
        folder.write(path[1:], text)
    for delay in (0.01, 0.03, 0.05, 0.08, 0.12, 0.2):
        process = subprocess.Popen(folder.command(), env=clean_env(folder.home, folder.env), stdout=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
    folder.sync()
    assert store.texts() == texts == folder.files()
    assert len(store.versions()) == 600, "one version each"


def test_two_syncs_of_one_folder_exclude_each_other(store, folder):
    with folder.watch() as watcher:
        assert until(lambda: (folder.dir / OWN / "state.json").exists())
        assert "another process" in folder.sync(exit=4).err
        watcher.stop()


def test_both_sides_follow_each_other_while_watched(store, folder):
    ids = store.fill({"/a.md": "a\n"})
    with folder.watch() as watcher:
        assert until(lambda: folder.dir.exists() and folder.files() == {"/a.md": "a\n"})
        store.edit(ids["/a.md"], content="theirs\n")
        assert until(lambda: folder.files() == {"/a.md": "theirs\n"})
        folder.write("mine.md", "mine\n")
        assert until(lambda: store.texts() == {"/a.md": "theirs\n", "/mine.md": "mine\n"})
        (folder.dir / "a.md").unlink()
        folder.write("last.md", "just before the end\n")
        said = watcher.stop()
        assert watcher.process.returncode == 0, said
    assert store.texts() == {"/mine.md": "mine\n", "/last.md": "just before the end\n"}, "the last pass waits for nothing"


def test_an_idle_watcher_asks_for_changes_only(store, new_folder, server):
    store.fill({f"/{k}.md": "x\n" for k in range(5)})
    relay = Relay(server.port)
    folder = new_folder(url=relay.url)
    try:
        with folder.watch() as watcher:
            assert until(lambda: len(relay.requests) >= 3 and "/changes" in relay.requests[-1])
            before = len(relay.requests)
            time.sleep(3)
            assert len(relay.requests) == before, relay.requests
            watcher.stop()
    finally:
        relay.close()


def test_a_watcher_outlasts_a_server_that_is_away(fresh_server, home):
    own = fresh_server()
    store = Store(wire_of(own))
    store.put("/a.md", "a\n")
    folder = Folder(home, own, store)
    with folder.watch() as watcher:
        assert until(lambda: folder.dir.exists() and folder.files() == {"/a.md": "a\n"})
        own.stop()
        folder.write("b.md", "b\n")
        time.sleep(2.5)
        own.start()
        assert until(lambda: store.texts() == {"/a.md": "a\n", "/b.md": "b\n"})
        said = watcher.stop()
    assert said.count("trying again") == 1 and "answers again" in said, said


def test_a_watcher_outlasts_an_empty_server_in_the_place_of_its_own(fresh_server, home, tmp_path):
    own = fresh_server()
    store, relay = Store(wire_of(own)), Relay(own.port)
    store.put("/a.md", "a\n")
    folder = Folder(home, own, store, url=relay.url)
    try:
        with folder.watch() as watcher:
            assert until(lambda: folder.dir.exists() and folder.files() == {"/a.md": "a\n"})
            own.stop()
            kept = own.data_dir.rename(tmp_path / "kept")
            relay.requests.clear()
            own.start()
            ended = watcher.process.poll
            asked = until(lambda: ended() is not None or sum("/snapshot" in line for line in relay.requests) >= 2)
            assert asked and ended() is None, watcher.process.stdout.read()
            own.stop()
            own.data_dir.rename(tmp_path / "stranger")
            kept.rename(own.data_dir)
            own.start()
            folder.write("b.md", "b\n")
            assert until(lambda: store.texts() == {"/a.md": "a\n", "/b.md": "b\n"})
            said = watcher.stop()
            assert watcher.process.returncode == 0, said
    finally:
        relay.close()
    assert said.count("trying again") == 1 and "answers again" in said, said


def test_a_watcher_ends_when_its_own_server_refuses_the_key(fresh_server, home):
    own = fresh_server()
    wire = wire_of(own)
    key = wire("POST", "/stele/v1/api_keys", json={"name": "sync", "role": "developer"}).ok(201)
    store = Store(wire)
    store.put("/a.md", "a\n")
    folder = Folder(home, own, store, key=key["key"])
    with folder.watch() as watcher:
        assert until(lambda: folder.dir.exists() and folder.files() == {"/a.md": "a\n"})
        assert wire("DELETE", f"/stele/v1/api_keys/{key['api_key_id']}").status == 204
        store.put("/b.md", "b\n")
        assert watcher.process.wait(60) == 6
    assert folder.files() == {"/a.md": "a\n"}


def test_two_folders_of_one_store_end_alike(store, new_folder):
    one, two = new_folder("one"), new_folder("two")
    with one.watch() as first, two.watch() as second:
        assert until(lambda: one.dir.exists() and two.dir.exists())

        def write(folder: Folder, who: str) -> None:
            for k in range(30):
                folder.write(f"{who}/{k}.md", f"{who} {k}\n")
                time.sleep(0.02)

        writers = [threading.Thread(target=write, args=(f, w)) for f, w in ((one, "a"), (two, "b"))]
        [t.start() for t in writers]
        [t.join() for t in writers]
        expected = {f"/{who}/{k}.md": f"{who} {k}\n" for who in "ab" for k in range(30)}
        assert until(lambda: one.files() == two.files() == expected)
        first.stop()
        second.stop()
    assert store.texts() == expected and len(store.versions()) == 60


def test_a_folder_that_is_taken_away_under_a_watcher_deletes_nothing(store, folder, home):
    texts = {f"/{k}.md": f"{k}\n" for k in range(3)}
    store.fill(texts)
    with folder.watch() as watcher:
        assert until(lambda: folder.dir.exists() and folder.files() == texts)
        folder.dir.rename(home / "elsewhere")
        folder.dir.mkdir()
        with contextlib.suppress(subprocess.TimeoutExpired):
            watcher.process.wait(10)
        assert watcher.process.poll() == 1
    assert store.texts() == texts


def test_many_files_go_in_few_requests(store, new_folder, server):
    relay = Relay(server.port)
    folder = new_folder(url=relay.url)
    try:
        folder.sync()
        for k in range(1000):
            folder.write(f"{k % 40}/{k}.md", f"{k}\n")
        relay.requests.clear()
        folder.sync()
        assert len(relay.requests) <= 8, len(relay.requests)
        second = new_folder("second", url=relay.url)
        relay.requests.clear()
        second.sync()
        assert len(relay.requests) <= 10, len(relay.requests)
    finally:
        relay.close()
    assert second.files() == store.texts()


def test_a_file_becomes_a_directory_and_the_reverse(store, folder):
    store.fill({"/a": "a\n", "/b/c.md": "c\n"})
    folder.sync()
    (folder.dir / "a").unlink()
    folder.write("a/inner.md", "inner\n")
    (folder.dir / "b/c.md").unlink()
    (folder.dir / "b").rmdir()
    folder.write("b", "b\n")
    folder.sync("--delete-all")
    assert store.texts() == {"/a/inner.md": "inner\n", "/b": "b\n"}
    assert sh('cat "$D/b"', D=folder.dir).ok() == "b\n"
