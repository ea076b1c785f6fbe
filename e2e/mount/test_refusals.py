"""What cannot be kept is refused early, with the errno of the table, and leaves the store as it was."""

from __future__ import annotations

import errno
import os

import pytest

from mounts import Store, sh, until, wire_of

BIG = 'head -c {} /dev/zero | tr "\\0" x > "$T/big"; '
REFUSALS = {
    "too large": (errno.EFBIG, BIG.format(102_401) + 'cat "$T/big" > "$MNT/a.md"'),
    "too large, copied": (errno.EFBIG, BIG.format(200_000) + 'cp "$T/big" "$MNT/a.md"'),
    "grown too large": (errno.EFBIG, 'truncate -s 102401 "$MNT/a.md"'),
    "NUL": (errno.EILSEQ, 'printf "a\\000b" > "$MNT/a.md"'),
    "a hole": (errno.EILSEQ, 'truncate -s 100 "$MNT/a.md"'),
    "not UTF-8": (errno.EILSEQ, 'printf "\\377\\376" > "$T/x"; cp "$T/x" "$MNT/a.md"'),
    "too deep": (errno.ENAMETOOLONG, 'cd "$MNT"; p=$(printf "e%.0s/" {1..20}); mkdir -p "$p" && echo no > "$p/f"'),
    "too long": (errno.ENAMETOOLONG, 'cd "$MNT"; n=$(head -c 250 /dev/zero | tr "\\0" a); mkdir -p "$n/$n/$n/$n" && echo no > "$n/$n/$n/$n/$n"'),
    "control character": (errno.EINVAL, "touch \"$MNT/\"$'a\\001b'"),
    "format character": (errno.EINVAL, "touch \"$MNT/\"$'a\\u200bb'"),
    "line separator": (errno.EINVAL, "touch \"$MNT/\"$'a\\u2028b'"),
    "decomposed": (errno.EINVAL, "touch \"$MNT/\"$'cafe\\u0301.md'"),
    "name not UTF-8": (errno.EILSEQ, "touch \"$MNT/\"$'caf\\xe9.md'"),
    "symbolic link": (errno.EPERM, 'ln -s a.md "$MNT/l"'),
    "hard link": (errno.EPERM, 'ln "$MNT/a.md" "$MNT/l"'),
    "pipe": (errno.EPERM, 'mkfifo "$MNT/p"'),
    "git": (errno.EPERM, 'mkdir "$MNT/.git"'),
    "a directory's name": (errno.EISDIR, 'echo x > "$MNT/d"'),
    "a file's name": (errno.ENOTDIR, 'echo x > "$MNT/a.md/b.md"'),
    "a directory with something in it": (errno.ENOTEMPTY, 'rmdir "$MNT/d"'),
    "into itself": (errno.EINVAL, "python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[1] + \"/x\")' \"$MNT/d\""),
    "attributes": (errno.EOPNOTSUPP, "python3 -c 'import os, sys; os.setxattr(sys.argv[1], \"user.k\", b\"v\")' \"$MNT/a.md\""),
}


@pytest.fixture
def furnished(store, new_mount):
    store.fill({"/a.md": "precious\n", "/d/b.md": "b\n"})
    return new_mount("--store", store.id).target


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_be_kept_is_refused(store, furnished, tmp_path, what):
    number, script = REFUSALS[what]
    sh(script, MNT=furnished, T=tmp_path).refused(number)
    assert store.texts() == {"/a.md": "precious\n", "/d/b.md": "b\n"}
    assert len(store.versions()) == 2


READ_ONLY = {
    "write": 'echo hi > "$MNT/new.md"', "append": 'echo hi >> "$MNT/a.md"', "remove": 'rm -f "$MNT/a.md"',
    "rename": 'mv "$MNT/a.md" "$MNT/z.md"', "mkdir": 'mkdir "$MNT/n"', "rmdir": 'rmdir "$MNT/d"',
    "truncate": 'truncate -s 0 "$MNT/a.md"', "sed": 'sed -i s/x/y/ "$MNT/a.md"', "chmod": 'chmod 600 "$MNT/a.md"',
    "touch": 'touch "$MNT/a.md"', "link": 'ln -s a.md "$MNT/l"', "scratch": 'echo hi > "$MNT/.a.md.swp"',
}


@pytest.mark.parametrize("how", ["store:ro", "--read-only"])
def test_a_read_only_mount_refuses_every_change(store, new_mount, how):
    store.fill({"/a.md": "x\n", "/d/b.md": "y\n"})
    mount = new_mount("--store", f"{store.id}:ro") if how == "store:ro" else new_mount("--read-only", "--store", store.id)
    for script in READ_ONLY.values():
        sh(script, MNT=mount.target).refused(errno.EROFS)
    assert sh('cat "$MNT/a.md"', MNT=mount.target).ok() == "x\n"
    assert len(store.versions()) == 2


def test_the_limit_is_exact(store, mnt):
    sh('head -c 102400 /dev/zero | tr "\\0" x > "$MNT/full.md"', MNT=mnt).ok()
    assert len(store.texts()["/full.md"]) == 102_400
    sh('printf y >> "$MNT/full.md"', MNT=mnt).refused(errno.EFBIG)
    assert len(store.versions()) == 1


def test_an_error_is_never_dropped_by_a_later_success(store, furnished):
    fd = os.open(furnished / "a.md", os.O_WRONLY | os.O_TRUNC)
    said = []

    def tried(call) -> None:
        try:
            call()
            said.append(0)
        except OSError as error:
            said.append(error.errno)

    for part in (b"x" * 102_400, b"y", b"z"):
        tried(lambda part=part: os.write(fd, part))
    tried(lambda: os.fsync(fd))
    tried(lambda: os.close(fd))
    assert said == [0] + [errno.EFBIG] * 4
    assert store.texts()["/a.md"] == "precious\n"


def test_modes_owners_and_times_are_accepted_and_change_nothing(store, furnished):
    before = os.stat(furnished / "a.md")
    sh('chmod 600 "$MNT/a.md" && chown "$(id -u)" "$MNT/a.md" && touch -d 2020-01-01 "$MNT/a.md"', MNT=furnished).ok()
    after = os.stat(furnished / "a.md")
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
    assert os.listxattr(furnished / "a.md") == [] and len(store.versions()) == 2


def test_a_full_store_has_no_room_for_one_more(fresh_server, new_mount):
    own = fresh_server(env={"STELE_MAX_MEMORIES_PER_STORE": "2"})
    store = Store(wire_of(own))
    store.fill({"/1.md": "1", "/2.md": "2"})
    mount = new_mount("--store", store.id, of=own)
    sh('echo 3 > "$MNT/3.md"', MNT=mount.target).refused(errno.ENOSPC)
    assert sh('df --output=iavail "$MNT" | tail -1 | tr -d " "', MNT=mount.target).ok() == "0\n"
    sh('echo 4 > "$MNT/2.md"', MNT=mount.target).ok()
    assert store.texts() == {"/1.md": "1", "/2.md": "4\n"}


def test_an_archived_store_turns_read_only_under_a_mount(store, wire, furnished):
    wire("POST", f"{store.route}/archive").ok()
    assert until(lambda: sh('touch "$MNT/x.md"', MNT=furnished).exit != 0)
    sh('echo y > "$MNT/a.md"', MNT=furnished).refused(errno.EROFS)
    assert sh('cat "$MNT/a.md"', MNT=furnished).ok() == "precious\n"


def test_a_deleted_store_is_stale(store, wire, furnished):
    wire("DELETE", f"/v1/memory_stores/{store.id}").ok()
    assert until(lambda: sh('cat "$MNT/a.md"', MNT=furnished).exit != 0)
    sh('cat "$MNT/a.md"', MNT=furnished).refused(errno.ESTALE)
    sh('echo x > "$MNT/b.md"', MNT=furnished).refused(errno.ESTALE)


def test_stores_are_file_systems_of_their_own(store, wire, furnished, new_mount):
    second = Store(wire)
    other = new_mount("--store", second.id).target
    rename = "python3 -c 'import os, sys; os.rename(sys.argv[1] + \"/a.md\", sys.argv[2] + \"/a.md\")' \"$MNT\" \"$O\""
    sh(rename, MNT=furnished, O=other).refused(errno.EXDEV)
    sh('mv "$MNT/a.md" "$O/a.md"', MNT=furnished, O=other).ok()
    assert second.texts() == {"/a.md": "precious\n"} and store.texts() == {"/d/b.md": "b\n"}


def test_a_database_is_refused_cleanly(mnt):
    script = "python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(\"create table t (x)\")' \"$MNT/d.db\""
    run = sh(script, MNT=mnt)
    assert run.exit != 0 and "sqlite3." in run.err
