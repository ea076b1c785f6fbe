"""Following a store: the feed as a page, a long poll and a stream, snapshots and many texts. DESIGN 7."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
import uuid

import pytest

from kit.events import Stream
from kit.server import STELE_BIN, Server
from kit.sockets import connect, request_bytes
from kit.tree import Tree, sha
from kit.wire import MEMORY, Wire

WRITERS = 4
OPERATIONS = {"created", "modified", "deleted"}


def changes(wire: Wire, tree: Tree, **query) -> dict:
    return wire("GET", f"{tree.route}/changes", query=query).ok()


def walk(wire: Wire, tree: Tree, limit: int = 100) -> list[dict]:
    """All changes, page by page."""
    told, after = [], 0
    while page := changes(wire, tree, after=after, limit=limit)["data"]:
        told += page
        after = page[-1]["sequence"]
    return told


def as_uuid(spelled: str) -> str:
    """The same id as Stele's own routes spell it."""
    alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    number = 0
    for digit in spelled.split("_01", 1)[1]:
        number = number * 58 + alphabet.index(digit)
    return str(uuid.UUID(int=number))


def test_every_answer_about_a_store_says_where_to_follow_on(wire, sdk, tree):
    route = tree.route
    seen = []
    made = wire("POST", f"{route}/memories", json={"path": "/a", "content": "one"})
    memory, version = made.ok()["id"], made.json()["memory_version_id"]
    target = f"{route}/memories/{memory}"
    seen.append((made, 1))
    seen.append((wire("POST", target, json={"content": "two"}), 2))
    seen.append((wire("POST", target, json={"content": "two"}), 2))
    stale = {"content": "three", "precondition": {"type": "content_sha256", "content_sha256": sha("one")}}
    seen.append((wire("POST", target, json=stale), 2))
    seen.append((wire("POST", f"{route}/memory_versions/{version}/redact"), 3))
    seen += [(wire("GET", at), 3) for at in (route, target, f"{route}/memories", f"{route}/memory_versions")]
    seen += [(wire("GET", target), 3)]  # a ready body
    seen.append((wire("GET", f"{route}/memories/{memory[:-1]}{'2' if memory[-1] != '2' else '3'}"), 3))
    other = f"/managed-agents/v1/memory_stores/{as_uuid(tree.id)}"
    seen += [(wire("GET", f"{other}{rest}", beta=None), 3) for rest in ("", "/memories", "/memory_versions")]
    seen.append((wire("GET", f"{other}/memory", query={"path": "/a"}, beta=None), 3))
    seen.append((wire("POST", f"{route}/archive"), 4))
    assert [answer.headers.get("stele-sequence") for answer, _ in seen] == [str(n) for _, n in seen]
    epochs = {answer.headers["stele-epoch"] for answer, _ in seen} | {wire("GET", "/v1/x").headers["stele-epoch"]}
    assert len(epochs) == 1 and uuid.UUID(epochs.pop())


def test_pages_tell_what_happened_oldest_first(wire, tree):
    memory_id = tree.put("/a", "one").id
    target = f"{tree.route}/memories/{memory_id}"
    first = wire("GET", target).ok()["memory_version_id"]
    wire("POST", target, json={"path": "/b", "content": "two"}).ok()
    wire("POST", f"{tree.route}/memory_versions/{first}/redact").ok()
    wire("DELETE", target).ok()
    wire("POST", f"{tree.route}/archive").ok()
    for limit in (1, 2, 100):
        told = walk(wire, tree, limit)
        assert [change["sequence"] for change in told] == [1, 2, 3, 4, 5]
    assert [c["operation"] for c in told] == ["created", "modified", "redacted", "deleted", "store_archived"]
    # The redaction took the path of the first one, also as the place where the memory was before.
    assert [c["path"] for c in told] == [None, "/b", None, "/b", None]
    assert {c["previous_path"] for c in told} == {None}
    assert told[1]["content_sha256"] == sha("two") and told[0]["content_sha256"] is None
    assert [c["memory_id"] for c in told] == [memory_id] * 4 + [None]
    assert told[2]["memory_version_id"] == first
    assert all(c["created_by"]["type"] == "api_actor" for c in told)
    page = changes(wire, tree, after=5)
    assert page == {"data": [], "last_sequence": 5}


def test_what_cannot_be_told_is_gone(wire, new_tree):
    tree, epoch = new_tree(), wire("GET", "/v1/x").headers["stele-epoch"]
    wire("POST", f"{tree.route}/memories", json={"path": "/a", "content": ""}).ok()
    at = f"{tree.route}/changes"
    assert wire("GET", at, query={"after": 1, "epoch": epoch}).ok()["data"] == []
    for query in ({"after": 2}, {"after": 10**18}, {"after": 2**64 - 1}, {"after": 0, "epoch": str(uuid.uuid4())}):
        error = wire("GET", at, query=query).refused(410, "invalid_request_error")
        assert error["details"] == {"error_code": "sequence_expired"}
    for bad in ({"after": -1}, {"limit": 0}, {"limit": 1001}, {"wait": 31}, {"wait": "x"}, {"epoch": "x"}):
        error = wire("GET", at, query=bad).refused(400, "invalid_request_error")
        assert next(iter(bad)) in error["message"]
    for last in ("x", f"{epoch}:x", f"{uuid.uuid4()}:1"):
        accept = [("accept", "text/event-stream"), ("last-event-id", last)]
        assert wire("GET", at, headers=accept).status in (400, 410)


def test_only_who_may_read_the_store_may_follow_it(wire, tree, elsewhere, new_key):
    elsewhere("GET", f"{tree.route}/changes").refused(404, "not_found_error")
    writer = wire.as_key(new_key(permissions=["create"])["key"])
    for at in ("changes", "changes?wait=1"):
        writer("GET", f"{tree.route}/{at}").refused(403, "permission_error")
    reader = wire.as_key(new_key(role="reader")["key"])
    assert reader("GET", f"{tree.route}/changes").ok()["data"] == []
    own = f"/stele/v1/memory_stores/{as_uuid(tree.id)}"
    assert reader("GET", f"{own}/snapshot").ok()["memories"] == []
    assert elsewhere("GET", f"{own}/snapshot").status == 404
    assert writer("POST", f"{own}/contents", json={"memory_ids": [str(uuid.uuid4())]}).status == 403


def test_a_long_poll_is_answered_by_the_next_change(wire, tree):
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(changes(wire, tree, wait=30)))
    waiting.start()
    time.sleep(0.3)
    wire("POST", f"{tree.route}/memories", json={"path": "/a", "content": ""}).ok()
    waiting.join(20)
    assert [change["path"] for change in answers[0]["data"]] == ["/a"]
    assert changes(wire, tree, after=1, wait=1) == {"data": [], "last_sequence": 1}


def test_a_stream_tells_changes_and_the_store_and_ends_with_it(wire, server, new_tree):
    tree = new_tree()
    stream = Stream(server.port, wire.key, f"{tree.route}/changes")
    assert stream.answer.headers["content-type"] == "text/event-stream"
    events = stream.events()
    wire("POST", f"{tree.route}/memories", json={"path": "/a", "content": "é"}).ok()
    first = next(events)
    epoch = stream.answer.headers["stele-epoch"]
    assert (first.name, first.id, first.data["path"]) == ("change", f"{epoch}:1", "/a")
    wire("POST", tree.route, json={"name": "Renamed"}).ok()
    renamed = next(events)
    assert (renamed.name, renamed.data["name"], renamed.data["id"]) == ("store", "Renamed", tree.id)
    wire("POST", f"{tree.route}/archive").ok()
    archived = [next(events), next(events)]
    assert [event.name for event in archived] == ["change", "store"]
    assert archived[0].data["operation"] == "store_archived" and archived[1].data["archived_at"]
    resumed = Stream(server.port, wire.key, f"{tree.route}/changes", last=first.id)
    again = resumed.events()
    assert [(e.name, e.data.get("sequence")) for e in (next(again), next(again))] == [("change", 2), ("store", None)]
    wire("DELETE", tree.route).ok()
    for stream in (events, again):
        assert [event.data["operation"] for event in stream] == ["store_deleted"]
    gone = wire("GET", f"{tree.route}/changes")
    gone.refused(404, "not_found_error")
    assert gone.headers["stele-epoch"] == epoch


def test_a_revoked_key_ends_its_streams(wire, server, tree, new_key):
    key = new_key(role="reader")
    stream = Stream(server.port, key["key"], f"{tree.route}/changes", timeout=20)
    poll = threading.Thread(target=lambda: polled.append(wire.as_key(key["key"])("GET", at).status))
    at, polled = f"{tree.route}/changes?wait=30", []
    poll.start()
    wire("POST", f"{tree.route}/memories", json={"path": "/a", "content": ""}).ok()
    assert next(stream.events()).data["path"] == "/a"
    poll.join(20)
    ended = threading.Event()
    threading.Thread(target=lambda: [*stream.events(), ended.set()]).start()
    polling = threading.Thread(target=lambda: polled.append(wire.as_key(key["key"])("GET", f"{at}&after=1").status))
    polling.start()
    time.sleep(0.3)
    assert wire("DELETE", f"/stele/v1/api_keys/{key['api_key_id']}").status == 204
    assert ended.wait(10), "the stream goes on"
    polling.join(10)
    assert polled == [200, 401]


def test_a_stop_ends_streams_and_long_polls_at_once(fresh_server, new_client):
    server = fresh_server()
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    streams = [Stream(server.port, server.admin_key, f"{tree.route}/changes") for _ in range(20)]
    polled = []
    poll = threading.Thread(target=lambda: polled.append(changes(wire, tree, wait=30)))
    poll.start()
    time.sleep(0.3)
    assert server.stop() == 0
    assert [list(stream.events()) for stream in streams] == [[]] * 20
    poll.join(10)
    assert polled == [{"data": [], "last_sequence": 0}]
    assert "cut off" not in server.log


def test_a_snapshot_and_many_texts_mirror_a_store(wire, tree):
    texts = {f"/{n:03}": "x" * (n * 500) for n in range(200)}
    made = [wire("POST", f"{tree.route}/memories", json={"path": p, "content": c}).ok() for p, c in texts.items()]
    own = f"/stele/v1/memory_stores/{as_uuid(tree.id)}"
    answer = wire("GET", f"{own}/snapshot", beta=None)
    snapshot = answer.ok()
    assert (snapshot["memory_store_id"], snapshot["sequence"]) == (as_uuid(tree.id), 200)
    assert snapshot["epoch"] == answer.headers["stele-epoch"] and answer.headers["stele-sequence"] == "200"
    assert [m["path"] for m in snapshot["memories"]] == sorted(texts)
    node, first = snapshot["memories"][7], made[7]
    assert node == {
        "path": first["path"],
        "memory_id": as_uuid(first["id"]),
        "memory_version_id": as_uuid(first["memory_version_id"]),
        **{name: first[name] for name in ("content_sha256", "content_size_bytes", "created_at", "updated_at")},
    }
    wanted = {"memory_ids": [m["memory_id"] for m in snapshot["memories"]], "memory_version_ids": [str(uuid.uuid4())]}
    got, rounds = {}, 0
    unknown = []
    while wanted["memory_ids"] or wanted["memory_version_ids"]:
        page = wire("POST", f"{own}/contents", json=wanted, beta=None).ok()
        got |= {item["path"]: item["content"] for item in page["contents"]}
        unknown += page["unknown"]["memory_version_ids"]
        wanted, asked, rounds = page["remaining"], wanted, rounds + 1
    assert rounds > 1 and got == texts and unknown == asked["memory_version_ids"]
    for bad in ({}, {"memory_ids": ["x"]}, {"memory_ids": [str(uuid.uuid4())] * 1001}, {"ids": []}):
        wire("POST", f"{own}/contents", json=bad, beta=None).refused_flat(400, "invalid_request")


class Reader(threading.Thread):
    """Follows a store through whichever server answers, and goes on from its last event when one dies."""

    def __init__(self, servers: list[Server], key: str, path: str, turn: int) -> None:
        super().__init__(daemon=True)
        self.servers, self.key, self.path, self.turn = servers, key, path, turn
        self.told, self.connections = [], 0

    def run(self) -> None:
        last = None
        while True:
            self.turn += 1
            with contextlib.suppress(OSError, AssertionError):
                stream = Stream(self.servers[self.turn % len(self.servers)].port, self.key, self.path, last=last)
                assert stream.status == 200
                self.connections += 1
                for event in stream.events():
                    if event.name == "change":
                        self.told.append(event.data)
                        last = event.id
                        if event.data["operation"] == "store_archived":
                            return
            time.sleep(0.02)


def write_on(server: Server, key: str, tree: Tree, number: int, stop: threading.Event) -> None:
    """Creates, updates, moves and deletes, whatever becomes of it."""
    serial = 0
    while not stop.is_set():
        serial += 1
        with contextlib.suppress(Exception), Wire(server.port, key).kept_alive() as call:
            made = call("POST", f"{tree.route}/memories", json={"path": f"/{number}/{serial}", "content": "one"}).ok()
            target = f"{tree.route}/memories/{made['id']}"
            call("POST", target, json={"content": "two"})
            call("POST", target, json={"path": f"/{number}/m{serial}"})
            call("POST", f"{tree.route}/memory_versions/{made['memory_version_id']}/redact")
            call("DELETE", target)


def nothing_is_missed_or_doubled(servers: list[Server], key: str, tree: Tree, kills: int) -> None:
    """Readers that reconnect to servers that are killed and started while writers write."""
    path, stop = f"{tree.route}/changes", threading.Event()
    readers = [Reader(servers, key, path, turn) for turn in range(3)]
    writers = [
        threading.Thread(target=write_on, args=(servers[n % len(servers)], key, tree, n, stop)) for n in range(WRITERS)
    ]
    for thread in readers + writers:
        thread.start()
    for n in range(kills):
        time.sleep(0.7)
        victim = servers[n % len(servers)]
        victim.kill()
        victim.start()
    time.sleep(0.5)
    stop.set()
    for writer in writers:
        writer.join(60)
    wire = Wire(servers[0].port, key)
    wire("POST", f"{tree.route}/archive").ok()
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive(), f"{len(reader.told)} told in {reader.connections} connections"
    told = walk(wire, tree, 1000)
    assert len(told) > 50
    history = tree.versions()[::-1]
    versions = [change for change in told if change["operation"] in OPERATIONS]
    assert [change["memory_version_id"] for change in versions] == [version.id for version in history]
    for reader in readers:
        sequences = [change["sequence"] for change in reader.told]
        assert sequences == list(range(1, len(told) + 1))
        kept = [{k: c[k] for k in ("sequence", "memory_id", "memory_version_id", "operation")} for c in reader.told]
        assert kept == [{k: c[k] for k in kept[0]} for c in told]
    assert sum(reader.connections for reader in readers) > len(readers), "readers had to reconnect"


def test_readers_that_reconnect_after_kill_9_miss_and_repeat_nothing(fresh_server, new_client):
    server = fresh_server()
    tree = Tree.planted(new_client(server))
    nothing_is_missed_or_doubled([server], server.admin_key, tree, kills=3)
    assert server.stop() == 0
    checked = server.check_database()
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture
def postgres():
    """The address of an empty database on a throw-away PostgreSQL."""
    binary = STELE_BIN.parent / "throwaway-postgres"
    if not binary.exists():
        pytest.skip("no throwaway-postgres beside the binary: cargo build --bins")
    cluster = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield cluster.stdout.readline().strip()
    cluster.stdin.close()
    cluster.wait(60)


def test_readers_of_two_servers_on_postgresql_miss_and_repeat_nothing(fresh_server, new_client, postgres):
    servers = [fresh_server(env={"STELE_DATABASE_URL": postgres}) for _ in range(2)]
    key = servers[0].admin_key
    tree = Tree.planted(new_client(servers[0]))
    nothing_is_missed_or_doubled(servers, key, tree, kills=4)


def test_a_key_revoked_on_one_server_ends_streams_on_the_other(fresh_server, new_client, postgres):
    servers = [fresh_server(env={"STELE_DATABASE_URL": postgres}) for _ in range(2)]
    wires = [Wire(server.port, servers[0].admin_key) for server in servers]
    tree = Tree.planted(new_client(servers[0]))
    key = wires[0]("POST", "/stele/v1/api_keys", json={"name": "e2e", "role": "reader"}).ok(201)
    stream = Stream(servers[1].port, key["key"], f"{tree.route}/changes", timeout=20)
    events = stream.events()
    wires[0]("POST", f"{tree.route}/memories", json={"path": "/a", "content": ""}).ok()
    assert next(events).data["path"] == "/a"
    assert wires[0]("DELETE", f"/stele/v1/api_keys/{key['api_key_id']}").status == 204
    assert list(events) == []


@pytest.mark.long
def test_a_reader_that_reads_nothing_is_cut_off_and_harms_nobody(fresh_server, new_client):
    server = fresh_server()
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    path = f"{tree.route}/changes?limit=1000"
    headers = [("x-api-key", wire.key), ("anthropic-beta", MEMORY), ("accept", "text/event-stream")]
    stalled = connect(server.port, receive_buffer=4096)
    stalled.sendall(request_bytes("GET", path, headers))
    reader = Stream(server.port, wire.key, f"{tree.route}/changes")
    told = []

    def follow() -> None:
        told.extend(event.data["sequence"] for event in reader.events() if event.name == "change")

    following = threading.Thread(target=follow, daemon=True)
    following.start()
    with wire.kept_alive() as call:
        for n in range(6000):
            call("POST", f"{tree.route}/memories", json={"path": f"/{n}", "content": ""}).ok()
    end = time.monotonic() + 60
    while len(told) < 6000 and time.monotonic() < end:
        time.sleep(0.1)
    assert told[:6000] == list(range(1, 6001))
    time.sleep(75)
    received = b""
    with contextlib.suppress(ConnectionError):
        while chunk := stalled.recv(65536):
            received += chunk
    events = [line for line in received.split(b"\n") if line.startswith(b'data: {"sequence"') and line.endswith(b"}")]
    sequences = [json.loads(line.removeprefix(b"data: "))["sequence"] for line in events]
    assert sequences == list(range(1, len(sequences) + 1)) and len(sequences) < 6000
