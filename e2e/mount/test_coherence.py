"""Changes made elsewhere: seen at once, never half, and never at the cost of somebody's text."""

from __future__ import annotations

import errno
import os
import threading
import time

import pytest

from mounts import sh, until
from relay import Relay


@pytest.fixture
def furnished(store, new_mount):
    store.ids_made = store.fill({"/a.md": "aaaa\n", "/gone.md": "G\n"})
    return new_mount("--store", store.id).target


@pytest.fixture
def relay(server):
    line = Relay(server.port)
    yield line
    line.close()


def names(mnt) -> list[str]:
    return sorted(f"/{p.relative_to(mnt)}" for p in mnt.rglob("*") if p.is_file())


def test_a_change_that_keeps_the_size_is_seen(store, furnished, new_mount):
    other = new_mount("--store", store.id).target
    assert [(m / "a.md").read_text() for m in (furnished, other)] == ["aaaa\n"] * 2
    (other / "a.md").write_text("bbbb\n")
    assert until(lambda: (furnished / "a.md").read_text() == "bbbb\n")


def test_create_rename_and_delete_elsewhere_are_seen(store, furnished):
    assert names(furnished) == ["/a.md", "/gone.md"] and not (furnished / "new.md").exists()
    store.put("/new.md", "N\n")
    store.edit(store.ids_made["/a.md"], path="/sub/b.md")
    store.drop(store.ids_made["/gone.md"])
    assert until(lambda: names(furnished) == ["/new.md", "/sub/b.md"]), names(furnished)
    assert (furnished / "new.md").read_text() == "N\n" and (furnished / "sub/b.md").read_text() == "aaaa\n"
    assert not (furnished / "a.md").exists()


def test_unlinked_while_open_stays_readable(store, furnished):
    with open(furnished / "a.md") as file:
        (furnished / "a.md").unlink()
        assert os.listdir(furnished) == ["gone.md"]
        assert file.read() == "aaaa\n"
    assert store.texts() == {"/gone.md": "G\n"}
    assert not [v for v in store.versions() if v["path"].startswith(("/.fuse_hidden", "/.nfs"))]


def test_deleted_elsewhere_while_open_for_writing_is_stale(store, furnished):
    fd = os.open(furnished / "a.md", os.O_RDWR)
    os.write(fd, b"mine")
    store.drop(store.ids_made["/a.md"])
    time.sleep(0.5)
    with pytest.raises(OSError) as error:
        os.fsync(fd)
    assert error.value.errno == errno.ESTALE
    with pytest.raises(OSError):
        os.close(fd)
    assert store.texts() == {"/gone.md": "G\n"}, "nothing rises from the dead"


def test_a_patch_in_place_over_somebody_elses_change_is_stale(store, furnished):
    fd = os.open(furnished / "a.md", os.O_RDWR)
    store.edit(store.ids_made["/a.md"], content="theirs, and longer\n")
    time.sleep(0.5)
    with pytest.raises(OSError) as error:
        os.pwrite(fd, b"XY", 1)
        os.fsync(fd)
    assert error.value.errno == errno.ESTALE
    with pytest.raises(OSError):
        os.close(fd)
    assert store.texts()["/a.md"] == "theirs, and longer\n"


def test_a_whole_rewrite_wins_and_the_displaced_text_stays_in_history(store, furnished):
    with open(furnished / "a.md", "w") as file:
        store.edit(store.ids_made["/a.md"], content="theirs\n")
        time.sleep(0.3)
        file.write("mine\n")
    assert store.texts()["/a.md"] == "mine\n"
    assert store.operations(store.ids_made["/a.md"]) == ["created", "modified", "modified"]


def test_a_listing_is_whole_while_others_make_and_delete(store, new_mount):
    store.fill({f"/keep/{k:03}.md": "k\n" for k in range(60)} | {f"/churn/{k:03}.md": "c\n" for k in range(20)})
    mnt = new_mount("--store", store.id).target
    stop = threading.Event()

    def churn() -> None:
        n = 0
        while not stop.is_set():
            store.drop(store.put(f"/churn/new-{n}.md", "n\n"))
            n += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(20):
            listed = sh('find "$MNT/keep" -name "*.md" | sort | uniq -c | wc -l', MNT=mnt).ok()
            assert listed == "60\n"
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_listing_through_an_older_descriptor_is_of_now(store, furnished, where):
    time.sleep(1.2)  # the kernel keeps listings of what has been quiet for a second
    fd = os.open(furnished, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if where == "here":
            (furnished / "new.md").write_text("N\n")
            (furnished / "gone.md").unlink()
        else:
            store.put("/new.md", "N\n")
            store.drop(store.ids_made["/gone.md"])
            assert until(lambda: (furnished / "new.md").exists() and not (furnished / "gone.md").exists())
        assert sorted(os.listdir(fd)) == ["a.md", "new.md"]
        assert sorted(os.listdir(furnished)) == ["a.md", "new.md"]
        time.sleep(1.2)
        assert sorted(os.listdir(furnished)) == ["a.md", "new.md"]
    finally:
        os.close(fd)


def test_empty_directories_are_this_mounts_own(store, furnished, new_mount):
    other = new_mount("--store", store.id).target
    sh('mkdir -p "$MNT/x/y"; test -d "$MNT/x/y"', MNT=furnished).ok()
    assert not (other / "x").exists()
    sh('echo t > "$MNT/x/y/t.md"; rm "$MNT/x/y/t.md"; test -d "$MNT/x/y" && rmdir "$MNT/x/y" "$MNT/x"', MNT=furnished).ok()
    assert sorted(os.listdir(furnished)) == ["a.md", "gone.md"]


def test_an_open_file_is_followed(store, furnished, new_mount):
    other = new_mount("--store", store.id).target
    with open(furnished / "a.md") as file:
        assert file.read() == "aaaa\n"
        sh('echo two >> "$MNT/a.md"', MNT=other).ok()
        assert until(lambda: file.read() == "two\n")


def test_renaming_a_store_does_not_move_its_mount(store, wire, furnished):
    wire("POST", store.route, json={"name": "Another name"}).ok()
    time.sleep(0.5)
    assert (furnished / "a.md").read_text() == "aaaa\n"


def test_a_warm_walk_asks_the_server_nothing(store, new_mount, relay):
    store.fill({f"/d{k % 5}/{k}.md": f"word {k}\n" for k in range(100)})
    mnt = new_mount("--store", store.id, url=relay.url).target
    walk = 'find "$MNT" -type f -size +0 | wc -l; grep -rl word "$MNT" | wc -l'
    assert sh(walk, MNT=mnt).ok() == "100\n100\n"
    before = [line for line in relay.requests if "/changes" not in line]
    assert len(before) <= 12, "texts come in batches"
    assert sh(walk, MNT=mnt).ok() == "100\n100\n"
    assert [line for line in relay.requests if "/changes" not in line] == before


@pytest.mark.parametrize("old", ["/d/a.md", "/d"])
@pytest.mark.parametrize("read", [False, True], ids=["unread", "read"])
def test_what_is_moved_is_what_the_store_has(store, new_mount, relay, old, read):
    """Also where a change by somebody else has not been heard of when its memory is moved, alone or with its folder."""
    memory = store.put("/d/a.md", "old\n")
    mnt = new_mount("--store", store.id, url=relay.url).target
    if read:
        assert (mnt / "d/a.md").read_text() == "old\n"
    relay.set("hold the feed")
    store.edit(memory, content="theirs, and longer\n")
    new = "/e/a.md" if old == "/d" else "/d/b.md"
    (mnt / old[1:]).rename(mnt / ("e" if old == "/d" else "d/b.md"))
    assert (mnt / new[1:]).read_text() == "theirs, and longer\n"
    sh('echo mine >> "$FILE"', FILE=mnt / new[1:]).ok()
    relay.set("open")
    assert store.texts() == {new: "theirs, and longer\nmine\n"}
    assert store.operations(memory) == ["created", "modified", "modified", "modified"]
