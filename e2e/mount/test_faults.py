"""A server that stops, hangs, refuses, or is cut off: no hang, no lost acknowledged write, no wrong content."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import time

import pytest

from mounts import Store, sh, start_session, until, wire_of
from relay import Relay

@pytest.fixture
def own(fresh_server):
    return fresh_server()


@pytest.fixture
def their(own) -> Store:
    store = Store(wire_of(own))
    store.fill({"/a.md": "x\n", "/unread.md": "u\n"})
    return store


@pytest.fixture
def relay(own):
    line = Relay(own.port)
    yield line
    line.close()


def test_a_stopped_server_leaves_what_is_cached_and_comes_back(own, their, new_mount):
    mnt = new_mount("--store", their.id, of=own).target
    assert sh('cat "$MNT/a.md"', MNT=mnt).ok() == "x\n"
    own.stop()
    assert sh('ls "$MNT"; cat "$MNT/a.md"', MNT=mnt).ok() == "a.md\nunread.md\nx\n"
    sh('echo y > "$MNT/b.md"', MNT=mnt).refused(errno.ETIMEDOUT)
    own.start()
    assert until(lambda: sh('echo y > "$MNT/b.md"', MNT=mnt).exit == 0, every=0.5)
    assert their.texts() == {"/a.md": "x\n", "/unread.md": "u\n", "/b.md": "y\n"}


def test_a_hung_server_hangs_nobody_and_requests_can_be_killed(own, their, new_mount):
    mnt = new_mount("--store", their.id, of=own).target
    own.process.send_signal(signal.SIGSTOP)
    try:
        script = 'df "$MNT" > /dev/null & p=$!; cat "$MNT/unread.md" > /dev/null & q=$!; sleep 1; kill -9 $p $q; wait $p $q; echo done'
        run = sh(script, MNT=mnt)
        assert run.out == "done\n", run
    finally:
        own.process.send_signal(signal.SIGCONT)
    assert until(lambda: sh('cat "$MNT/unread.md"', MNT=mnt).exit == 0, every=0.5)


def test_a_cut_network_is_noticed_and_outlived(their, relay, own, new_mount):
    mnt = new_mount("--store", their.id, of=own, url=relay.url).target
    assert sh('cat "$MNT/a.md"', MNT=mnt).ok() == "x\n"
    relay.set("silent")
    run = sh('timeout -s KILL 30 ls "$MNT"', MNT=mnt)
    assert run.exit in (0, 1, 2), run
    sh('echo y > "$MNT/b.md"', MNT=mnt).refused(errno.ETIMEDOUT)
    relay.set("open")
    their.put("/meanwhile.md", "m\n")
    assert until(lambda: (mnt / "meanwhile.md").exists(), every=0.2)
    assert until(lambda: sh('echo z > "$MNT/c.md"', MNT=mnt).exit == 0, every=0.5)
    assert their.texts()["/c.md"] == "z\n"


@pytest.mark.parametrize(("answer", "numbers"), [(500, {"ETIMEDOUT", "EIO"}), (429, {"ETIMEDOUT", "EAGAIN"})])
def test_trouble_with_the_server_is_an_error_and_no_loss(their, relay, own, new_mount, answer, numbers):
    mnt = new_mount("--store", their.id, of=own, url=relay.url).target
    assert sh('cat "$MNT/a.md"', MNT=mnt).ok() == "x\n"
    relay.set(answer)
    run = sh('echo lost > "$T"; cp "$T" "$MNT/a.md"', MNT=mnt, T="/tmp/stele-e2e-lost")
    assert run.exit != 0, run
    assert any(os.strerror(getattr(errno, number)) in run.err for number in numbers), run
    assert sh('cat "$MNT/a.md"', MNT=mnt).ok() == "x\n"
    relay.set("open")
    assert until(lambda: sh('echo y > "$MNT/a.md"', MNT=mnt).exit == 0, every=0.5)
    assert their.texts()["/a.md"] == "y\n"


def test_a_write_whose_answer_was_lost_is_done_once(their, relay, own, new_mount):
    mnt = new_mount("--store", their.id, of=own, url=relay.url).target
    relay.set("lose answers")
    writer = subprocess.Popen(["bash", "-c", 'echo mine > "$1"', "-", str(mnt / "new.md")])
    assert until(lambda: "/new.md" in their.texts())
    relay.set("open")
    assert writer.wait(60) == 0
    assert their.texts()["/new.md"] == "mine\n"
    assert len([v for v in their.versions() if v["path"] == "/new.md"]) == 1


@pytest.mark.parametrize("heard", [True, False], ids=["heard of", "not heard of"])
@pytest.mark.parametrize("handles", [1, 2])
def test_an_append_whose_answer_was_lost_is_there_once(their, relay, own, new_mount, handles, heard):
    """Also where more is written before the mount hears that it had arrived."""
    mnt = new_mount("--store", their.id, of=own, url=relay.url).target
    fds = [os.open(mnt / "a.md", os.O_WRONLY | os.O_APPEND) for _ in range(handles)]
    for fd in fds:
        os.write(fd, b"first\n")
    relay.set("spoil answers")
    with pytest.raises(OSError):
        os.fsync(fds[0])
    relay.set("open")
    assert their.texts()["/a.md"] == "x\n" + "first\n" * handles, "it had arrived"
    if heard:
        their.put("/later.md", "l\n")
        assert until(lambda: (mnt / "later.md").exists())
    os.write(fds[-1], b"last\n")

    def saved() -> bool:
        with contextlib.suppress(OSError):
            os.fsync(fds[-1])
            return True
        return False

    assert until(saved, every=0.5)
    for fd in fds:
        os.close(fd)
    assert their.texts()["/a.md"] == "x\n" + "first\n" * handles + "last\n"
    assert len([v for v in their.versions() if v["path"] == "/a.md"]) == 3


def test_a_read_that_fails_is_tried_once(their, relay, own, new_mount):
    """The kernel asks twice for what one `read` wants; the server is not waited for twice."""
    mnt = new_mount("--store", their.id, of=own, url=relay.url).target
    relay.retry_after = 60
    relay.set(503)
    with open(mnt / "a.md", "rb", buffering=0) as file:
        with pytest.raises(OSError) as error:
            file.read(100)
        assert error.value.errno == errno.ETIMEDOUT
        assert len([line for line in relay.requests if "/contents" in line]) == 1
        relay.set("open")

        def again() -> bytes:
            with contextlib.suppress(OSError):
                return os.pread(file.fileno(), 100, 0)
            return b""

        assert until(again, every=0.2) == b"x\n"


def test_a_revoked_key_ends_access_but_not_the_machine(own, their, new_mount):
    wire = wire_of(own)
    key = wire("POST", "/stele/v1/api_keys", json={"name": "mount", "role": "developer"}).ok(201)
    mount = new_mount("--store", their.id, of=own, key=key["key"])
    assert sh('cat "$MNT/a.md"', MNT=mount.target).ok() == "x\n"
    assert wire("DELETE", f"/stele/v1/api_keys/{key['api_key_id']}").status == 204
    assert until(lambda: sh('ls "$MNT"', MNT=mount.target).exit != 0, every=0.2)
    sh('cat "$MNT/a.md"', MNT=mount.target).refused(errno.EACCES)
    sh('echo y > "$MNT/b.md"', MNT=mount.target).refused(errno.EACCES)
    mount.stop()


def test_the_end_of_a_session_ends_its_mount(own, new_mount, home):
    wire = wire_of(own)
    store = Store(wire, "notes")
    store.put("/a.md", "x\n")
    session = start_session(wire, store)
    parent = home / "memory"
    mount = new_mount("--session", session["id"], of=own, target=parent, points=[parent / "notes"])
    assert sh('cat "$MNT/a.md"', MNT=parent / "notes").ok() == "x\n"
    wire("POST", f"/v1/sessions/{session['id']}/archive", beta="managed-agents-2026-04-01").ok()
    assert until(lambda: sh('cat "$MNT/a.md"', MNT=parent / "notes").exit != 0, every=0.2)
    sh('echo y > "$MNT/b.md"', MNT=parent / "notes").refused(errno.EACCES)
    assert mount.stop() == 0


def test_an_empty_server_in_its_place_deletes_nothing(own, their, new_mount, tmp_path):
    mnt = new_mount("--store", their.id, of=own).target
    assert sh('cat "$MNT/a.md"', MNT=mnt).ok() == "x\n"
    own.stop()
    data = own.data_dir.rename(tmp_path / "kept")
    own.start()
    time.sleep(3)
    assert own.admin_key != (data / "admin-key").read_text().strip()
    own.stop()
    own.data_dir.rename(tmp_path / "stranger")
    data.rename(own.data_dir)
    own.start()
    assert until(lambda: sh('cat "$MNT/a.md"', MNT=mnt).out == "x\n", every=0.5)
    assert their.texts() == {"/a.md": "x\n", "/unread.md": "u\n"}


def test_an_acknowledged_write_outlives_a_kill_of_the_server(own, their, new_mount):
    mnt = new_mount("--store", their.id, of=own).target
    sh('for k in $(seq 50); do echo "$k" > "$MNT/$k.md" || exit 1; done', MNT=mnt).ok()
    own.kill()
    own.start()
    assert {f"/{k}.md": f"{k}\n" for k in range(1, 51)}.items() <= their.texts().items()
