"""How editors, shells and programs save: one version for each real change, the memory's id stays, nothing else is left.

Each row: what the store holds, a bash script on the mount (`$MNT`; `$T` is a directory elsewhere), what the store holds
then, and how many versions each of its memories has.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time

import pytest

from mounts import Run, sh, table, until

SAVES = {
    "redirect": ({}, 'echo hi > "$MNT/a.md"', {"/a.md": "hi\n"}, {"/a.md": 1}),
    "append": ({"/a.md": "1\n"}, 'echo 2 >> "$MNT/a.md"; echo 3 >> "$MNT/a.md"', {"/a.md": "1\n2\n3\n"}, {"/a.md": 3}),
    "touch": ({"/a.md": "x\n"}, 'touch "$MNT/a.md" "$MNT/b.md"', {"/a.md": "x\n", "/b.md": ""}, {"/a.md": 1, "/b.md": 1}),
    "sed": ({"/a.md": "red\n"}, 'sed -i s/red/blue/ "$MNT/a.md"', {"/a.md": "blue\n"}, {"/a.md": 2}),
    "perl": ({"/a.md": "red\n"}, 'perl -pi -e s/red/blue/ "$MNT/a.md"', {"/a.md": "blue\n"}, {"/a.md": 2}),
    "vim": (
        {"/a.md": "red\n"},
        'vim -u NONE -N -es -c "set writebackup backupcopy=auto backupskip=" -c "%s/red/blue/" -c wq "$MNT/a.md"',
        {"/a.md": "blue\n"}, {"/a.md": 2},
    ),
    "ed": ({"/a.md": "red\n"}, 'printf "%s\\n" "s/red/blue/" w q | ed -s "$MNT/a.md"', {"/a.md": "blue\n"}, {"/a.md": 2}),
    "the same text": (
        {"/a.md": "same\n"}, 'printf "same\\n" > "$MNT/a.md"; echo same > "$T/a"; cp "$T/a" "$MNT/a.md"', {"/a.md": "same\n"},
        {"/a.md": 1},
    ),
    "truncate": ({"/a.md": "0123456789\n"}, 'truncate -s 4 "$MNT/a.md"', {"/a.md": "0123"}, {"/a.md": 2}),
    "move over": ({"/a.md": "new\n", "/b.md": "old\n"}, 'mv "$MNT/a.md" "$MNT/b.md"', {"/b.md": "new\n"}, {"/b.md": 2}),
    "move": ({"/a.md": "x\n"}, 'mkdir "$MNT/d"; mv "$MNT/a.md" "$MNT/d/b.md"', {"/d/b.md": "x\n"}, {"/d/b.md": 2}),
    "move a directory": (
        {"/o/a.md": "A\n", "/o/s/b.md": "B\n"}, 'mv "$MNT/o" "$MNT/n"', {"/n/a.md": "A\n", "/n/s/b.md": "B\n"},
        {"/n/a.md": 2, "/n/s/b.md": 2},
    ),
    "write aside and rename": (
        {"/a.md": "old\n"}, 'echo new > "$MNT/a.md.tmp.1"; mv "$MNT/a.md.tmp.1" "$MNT/a.md"', {"/a.md": "new\n"}, {"/a.md": 2},
    ),
    "keep a backup": (
        {"/a.md": "old\n"}, 'mv "$MNT/a.md" "$MNT/a.md~"; echo new > "$MNT/a.md"; rm "$MNT/a.md~"', {"/a.md": "new\n"},
        {"/a.md": 2},
    ),
    "litter": (
        {}, 'cd "$MNT"; echo x > a.md; printf "\\000\\005" > ._a.md; printf "\\000" > .DS_Store; echo s > .a.md.swp; echo t > a.md~',
        {"/a.md": "x\n"}, {"/a.md": 1},
    ),
    "dotfiles": ({}, 'cd "$MNT"; echo a > .env.example; mkdir .rules; echo b > .rules/x.md', {"/.env.example": "a\n", "/.rules/x.md": "b\n"}, {}),
    "a scratch name that is a memory": (
        {"/n.tmp": "kept\n"}, 'echo more >> "$MNT/n.tmp"', {"/n.tmp": "kept\nmore\n"}, {"/n.tmp": 2},
    ),
    "a mapping": (
        {"/a.md": "abcdef\n"},
        """python3 -c 'import mmap, sys
with open(sys.argv[1], "r+b") as f:
    m = mmap.mmap(f.fileno(), 0); m[0:3] = b"XYZ"; m.flush(); m.close()' "$MNT/a.md" """,
        {"/a.md": "XYZdef\n"}, {"/a.md": 2},
    ),
    "tar": ({}, 'mkdir "$T/d"; echo x > "$T/d/a.md"; tar -C "$T" -cf - d | tar -C "$MNT" -xf -', {"/d/a.md": "x\n"}, {"/d/a.md": 1}),
    "cp -a": ({}, 'echo x > "$T/b"; cp -a "$T/b" "$MNT/b.md"; cp -p "$T/b" "$MNT/c.md"', {"/b.md": "x\n", "/c.md": "x\n"}, {"/b.md": 1, "/c.md": 1}),
    "rsync": ({}, 'mkdir "$T/d"; echo x > "$T/d/a.md"; rsync -rt "$T/d/" "$MNT/"', {"/a.md": "x\n"}, {"/a.md": 1}),
    "a split character": (
        {},
        """python3 -c 'import os, sys
e = "é".encode(); fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY); os.write(fd, e[:1]); os.write(fd, e[1:]); os.close(fd)' \
"$MNT/a.md" """,
        {"/a.md": "é"}, {"/a.md": 1},
    ),
    "line ends": ({"/w.txt": "one\r\ntwo\r\n"}, 'sed -i s/two/2/ "$MNT/w.txt"', {"/w.txt": "one\r\n2\r\n"}, {"/w.txt": 2}),
    "the usual tools": (
        {"/a.md": "b\na\n"},
        'cd "$MNT" && sort -o a.md a.md && echo c | tee -a a.md >/dev/null && printf "%s\\n" 1d w q | ed -s a.md '
        '&& awk "{print toupper(\\$0)}" a.md > "$T/o" && cp "$T/o" a.md && install -m 600 "$T/o" b.md',
        {"/a.md": "B\nC\n", "/b.md": "B\nC\n"}, {"/a.md": 5, "/b.md": 1},
    ),
    "remove and make again": ({"/a.md": "one\n"}, 'rm "$MNT/a.md"; echo two > "$MNT/a.md"', {"/a.md": "two\n"}, {"/a.md": 1}),
}


@pytest.mark.parametrize("name", SAVES)
def test_a_save_is_one_version(store, mnt, tmp_path, name):
    before, script, after, versions = SAVES[name]
    tool = {"ed": "ed", "rsync": "rsync", "the usual tools": "ed"}.get(name) or script.split()[0]
    if tool in ("vim", "perl", "ed", "rsync") and not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    ids = store.fill(before)
    assert until(lambda: sorted(before) == sorted(f"/{p.relative_to(mnt)}" for p in mnt.rglob("*") if p.is_file()))
    sh(script, MNT=mnt, T=tmp_path).ok()
    assert until(lambda: store.texts() == after), store.texts()
    time.sleep(0.3)  # a version too many would come late
    assert store.texts() == after
    now = store.ids()
    for path, count in versions.items():
        assert len(store.versions(now[path])) == count, (path, store.operations(now[path]))
        if path in ids and name != "remove and make again":
            assert now[path] == ids[path], f"{path} keeps its id"
    named = {v["path"] for v in store.versions()}
    assert named <= set(before) | set(after), "no version names anything else"


def test_nobody_sees_the_empty_moment_of_a_redirect(store, mnt, new_mount):
    store.put("/a.md", "old\n")
    other = new_mount("--store", store.id).target
    assert until(lambda: (mnt / "a.md").exists())
    with open(mnt / "a.md", "w") as file:
        time.sleep(1)
        assert (other / "a.md").read_text() == "old\n"
        file.write("new\n")
    assert until(lambda: (other / "a.md").read_text() == "new\n")
    assert store.operations() == ["created", "modified"]


def test_two_mounts_append_to_one_file(store, mnt, new_mount):
    memory = store.put("/log.md", "")
    mounts = {"a": mnt, "b": new_mount("--store", store.id).target}
    assert until(lambda: all((m / "log.md").exists() for m in mounts.values()))
    runs: dict[str, Run] = {}

    def append(who: str) -> None:
        runs[who] = sh(f'for k in $(seq 30); do echo "{who} $k" >> "$MNT/log.md" || exit 1; done', MNT=mounts[who])

    threads = [threading.Thread(target=append, args=(who,)) for who in mounts]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for run in runs.values():
        run.ok()
    lines = store.texts()["/log.md"].splitlines()
    assert sorted(lines) == sorted(f"{who} {k}" for who in mounts for k in range(1, 31))
    for who in mounts:
        assert [line for line in lines if line[0] == who] == [f"{who} {k}" for k in range(1, 31)]
    assert len(store.versions(memory)) == 61


def test_fsync_is_a_moment_of_commit(store, mnt):
    fd = os.open(mnt / "j.md", os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(fd, b"first\n")
    os.fsync(fd)
    assert store.texts() == {"/j.md": "first\n"}
    os.write(fd, b"second\n")
    os.close(fd)
    assert store.texts() == {"/j.md": "first\nsecond\n"}
    assert store.operations() == ["created", "modified"]


def test_what_was_closed_is_what_the_server_has(store, mnt, tmp_path):
    script = 'for k in $(seq 60); do head -c $((k * 1000)) /dev/urandom | base64 -w 60 > "$T/$k"; cp "$T/$k" "$MNT/$k.md" || exit 1; done'
    sh(script, MNT=mnt, T=tmp_path).ok()
    assert store.texts() == {f"/{k}.md": (tmp_path / str(k)).read_text() for k in range(1, 61)}
    assert len(store.versions()) == 60


@pytest.mark.parametrize("whom", ["foreground", "worker", "supervisor"])
def test_sigterm_commits_what_open_handles_have_written(store, new_mount, whom):
    mount = new_mount(*(() if whom == "foreground" else ("--daemon",)), "--store", store.id)
    fd = os.open(mount.target / "a.md", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"written\n")
    pid = {"worker": "pid", "supervisor": "supervisor_pid", "foreground": "pid"}[whom]
    os.kill(mount.status()[pid], signal.SIGTERM)
    assert until(lambda: not table(mount.target) and not mount.target.exists())
    with contextlib.suppress(OSError):
        os.close(fd)
    assert store.texts() == {"/a.md": "written\n"} and len(store.versions()) == 1


def test_a_temporary_file_that_is_left_becomes_a_memory_at_the_end(store, mount):
    sh('echo kept > "$MNT/notes.tmp"; echo litter > "$MNT/.a.md.swp"', MNT=mount.target).ok()
    assert store.texts() == {}
    assert mount.stop() == 0
    assert store.texts() == {"/notes.tmp": "kept\n"}
