"""What SQLite must do under a server: one owner, real syncs, damage that stays where it is, a bounded log."""

import contextlib
import random
import shutil
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.expect import eventually
from kit.ids import uuid_of
from kit.server import Server
from kit.sockets import connect, request_bytes
from kit.trace import system_calls
from kit.tree import Tree
from kit.wire import MEMORY, Wire, dumps

MB = 1024 * 1024


@pytest.mark.case("SQ-02")
def test_a_second_server_on_one_directory_refuses_and_names_the_first(fresh_server, tmp_path, new_client):
    first = fresh_server()
    tree = Tree.planted(new_client(first))
    tree.put("/a.md", "kept")
    second = Server(tmp_path / "second", data_dir=first.data_dir)
    try:
        second.spawn()
        assert second.process.wait(5) != 0
        assert str(first.data_dir) in second.log and str(first.process.pid) in second.log
        assert first.answers("/readyz")
        first.kill()
        second.start()
        assert Tree(new_client(second), tree).texts() == {"/a.md": "kept"}
    finally:
        second.close()


def can_trace(tmp_path) -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-f", "-y", "-o", tmp_path / "probe", "true"], capture_output=True).returncode == 0


@pytest.mark.case("SQ-06")
def test_an_acknowledged_write_was_synced_before_its_answer(fresh_server, new_client, tmp_path):
    if not can_trace(tmp_path):
        pytest.skip("strace is missing or may not trace here")
    trace, server = tmp_path / "trace", fresh_server(start=False)
    writes, syncs = "write,pwrite64,writev,pwritev,pwritev2", "fsync,fdatasync"
    # -D: the tracer steps aside, so that the process the fixture ends is the server itself.
    server.start(
        wrapper=(
            "strace",
            "-D",
            "-f",
            "-y",
            "-s",
            "4096",
            "-o",
            str(trace),
            "-e",
            f"trace={writes},{syncs},sendto,sendmsg",
        )
    )
    tree = Tree.planted(new_client(server))
    answer = Wire(server.port, server.admin_key)(
        "POST", f"{tree.route}/memories", json={"path": "/a.md", "content": "x"}
    )
    answer.ok()
    server.stop()
    assert eventually(lambda: "+++ exited with" in trace.read_text(errors="replace").splitlines()[-1])
    calls = system_calls(trace.read_text(errors="replace"))
    sent = next(c for c in calls if answer.request_id in c.text and "<socket:" in c.text)
    written = [
        c for c in calls if c.name in writes.split(",") and "stele.db-wal>" in c.text and c.started < sent.started
    ]
    synced = [c for c in calls if c.name in syncs.split(",") and "stele.db-wal>" in c.text and c.ended < sent.started]
    assert written and any(sync.started > written[-1].ended for sync in synced)


@pytest.mark.case("SQ-07")
def test_one_damaged_record_fails_alone(fresh_server, new_client):
    server = fresh_server(env={"STELE_COMPRESSION": "off"})
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    first, second, third = (tree.put(path, text) for path, text in (("/a.md", "x"), ("/b.md", "y"), ("/c.md", "z")))
    assert server.stop() == 0 and server.check_database().returncode == 0
    damage(server, "/b.md", b"q")
    checked = server.check_database()
    server.start()
    assert tree.paths() == ["/a.md", "/b.md", "/c.md"]
    assert (tree.read(first.id).content, tree.read(third.id).content) == ("x", "z")
    wire("GET", f"{tree.route}/memories/{second.id}").refused(500, "api_error")
    tree.put("/d.md", "writes go on")
    assert checked.returncode != 0
    said = checked.stdout + checked.stderr
    assert str(uuid_of(second.id)) in said and str(uuid_of(second.memory_version_id)) in said
    assert str(uuid_of(first.id)) not in said


def damage(server: Server, path: str, content: bytes) -> None:
    """Change the bytes of a memory's head behind the server's back."""
    with contextlib.closing(sqlite3.connect(server.database)) as connection, connection:
        changed = connection.execute(
            "UPDATE versions SET content = ?"
            " WHERE encoding = 0 AND version = (SELECT head FROM memories WHERE path = ?)",
            (content, path),
        )
        assert changed.rowcount == 1


@contextlib.contextmanager
def dripping(port: int, request: bytes, list_request: bytes, count: int):
    """So many clients that send a request one byte a second, and as many that read an answer so."""
    senders = [connect(port) for _ in range(count)]
    readers = [connect(port, receive_buffer=4096) for _ in range(count)]
    for reader in readers:
        reader.sendall(list_request)
    for reader in readers:
        assert reader.recv(1) == b"H"
    done = threading.Event()

    def drip():
        position = 0
        while not done.wait(1):
            for sender, reader in zip(senders, readers, strict=True):
                with contextlib.suppress(ConnectionError):  # the server may have lost patience
                    sender.sendall(request[position : position + 1])
                    reader.recv(1)
            position += 1

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        for sock in senders + readers:
            sock.close()


@pytest.mark.case("SQ-08")
def test_slow_clients_hold_no_lock(fresh_server, new_client):
    server = fresh_server()
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    for i in range(20):
        tree.put(f"/big{i:02d}.md", "x" * 60_000)
    credentials = [("x-api-key", server.admin_key), ("anthropic-beta", MEMORY)]
    body = dumps({"path": "/slow.md", "content": "x"})
    create = request_bytes("POST", f"{tree.route}/memories", [*credentials, ("content-length", str(len(body)))], body)
    read_all = request_bytes("GET", f"{tree.route}/memories?view=full", credentials)

    def creates(name: str) -> float:
        with wire.kept_alive() as call:
            started = time.monotonic()
            for i in range(200):
                call("POST", f"{tree.route}/memories", json={"path": f"/{name}{i}.md", "content": "x"}).ok()
            return time.monotonic() - started

    alone = creates("alone")
    with dripping(server.port, create, read_all, 50):
        time.sleep(2)  # so that the slow ones are under way
        # Two seconds on a machine of its own; a busy one takes longer without them too.
        assert creates("n") < max(2, 5 * alone)
    assert len(tree.list()) == 420


def log_size(server: Server) -> int:
    with contextlib.suppress(FileNotFoundError):
        return server.database.with_name("stele.db-wal").stat().st_size
    return 0


def write_steadily(wire: Wire, tree: Tree, per_second: int, end: float) -> None:
    """10 KB that do not compress, into one memory after another."""
    ids = [tree.put(f"/w{threading.get_ident()}-{i}.md").id for i in range(50)]
    due, number = time.monotonic(), 0
    with wire.kept_alive() as call:
        while time.monotonic() < end:
            content = random.randbytes(5_000).hex()
            call("POST", f"{tree.route}/memories/{ids[number % 50]}", json={"content": content}).ok()
            number += 1
            due += 1 / per_second
            time.sleep(max(0.0, due - time.monotonic()))


def walk_steadily(wire: Wire, tree: Tree, end: float) -> None:
    with wire.kept_alive() as call:
        query: dict = {"limit": 100}
        while time.monotonic() < end:
            page = call("GET", f"{tree.route}/memory_versions", query=query).ok()
            query = {"limit": 100} | ({"page": page["next_page"]} if page["next_page"] else {})


def load(server: Server, sdk, seconds: float, writers: int, readers: int) -> int:
    """200 writes a second in all, beside readers that walk long lists; the largest size of the log meanwhile."""
    tree, wire, end = Tree.planted(sdk), Wire(server.port, server.admin_key), time.monotonic() + seconds
    largest = 0
    with ThreadPoolExecutor(writers + readers) as pool:
        clients = [pool.submit(write_steadily, wire, tree, 200 // writers, end) for _ in range(writers)]
        clients += [pool.submit(walk_steadily, wire, tree, end) for _ in range(readers)]
        while not all(client.done() for client in clients):
            largest = max(largest, log_size(server))
            time.sleep(0.1)
    for client in clients:
        client.result()
    return largest


@pytest.mark.case("SQ-01")
@pytest.mark.parametrize(
    ("seconds", "readers"), [(8, 4), pytest.param(600, 20, marks=pytest.mark.long)], ids=["8 seconds", "10 minutes"]
)
def test_the_write_ahead_log_stays_bounded(fresh_server, new_client, seconds, readers):
    server = fresh_server()
    largest = load(server, new_client(server), seconds, 4, readers)
    assert 0 < largest <= 256 * MB
    assert eventually(lambda: log_size(server) <= 64 * MB, 10)
    assert server.stop() == 0 and server.check_database().returncode == 0
