"""Input that wants to crash the server or leave half a write. After each attack it is whole and answers."""

import contextlib
import http.client
import os

import pytest

from kit.server import Server
from kit.sockets import connect, exchange, request_bytes
from kit.tree import Tree
from kit.wire import MEMORY, Wire, dumps

MB = 1024 * 1024
CREATE = dumps({"path": "/attack.md", "content": "x"})


@pytest.fixture(scope="module")
def victim(tmp_path_factory):
    """A server of this file's own, so that its fall would not take other tests with it."""
    server = Server(tmp_path_factory.mktemp("victim"))
    try:
        yield server.start()
    finally:
        server.close()


@pytest.fixture(scope="module")
def client(victim, new_client):
    return new_client(victim)


@pytest.fixture
def wire(victim):
    return Wire(victim.port, victim.admin_key)


@pytest.fixture
def target(victim, client):
    """A store with one memory; whatever the test did, that is what it still holds."""
    process, tree = victim.process, Tree.planted(client)
    memory = tree.put("/kept.md", "kept")
    yield tree
    assert victim.process is process and victim.running
    assert victim.answers("/healthz") and victim.answers("/readyz")
    assert tree.texts() == {"/kept.md": "kept"} and tree.operations() == ["created"]
    assert tree.read(memory.id).content == "kept"
    assert "panicked" not in victim.log


def create_request(victim, tree, headers: list[tuple[str, str]], body: bytes) -> bytes:
    credentials = [("x-api-key", victim.admin_key), ("anthropic-beta", MEMORY), ("content-type", "application/json")]
    return request_bytes("POST", f"{tree.route}/memories", credentials + headers, body)


DEEP = {
    "arrays": b"[" * 10_000 + b"]" * 10_000,
    "objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "unclosed arrays": b"[" * 10_000,
    "in the content": b'{"path": "/attack.md", "content": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "in an unknown field": b'{"path": "/attack.md", "content": "x", "more": '
    + b'{"a":' * 10_000
    + b"1"
    + b"}" * 10_001,
    "in the precondition": b'{"content": "x", "precondition": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_refused(wire, target, body):
    (memory,) = target.list()
    for path in (f"{target.route}/memories", f"{target.route}/memories/{memory.id}", target.route):
        wire("POST", path, body=body).refused(400, "invalid_request_error")


def test_a_body_of_33_mb_is_too_large(wire, target):
    for path in (f"{target.route}/memories", "/v1/memory_stores"):
        body = dumps({"path": "/attack.md", "name": "x", "content": "a" * (33 * MB)})
        wire("POST", path, body=body).refused(413, "request_too_large")


def test_a_body_of_31_mb_is_read_and_its_content_refused(wire, target):
    body = dumps({"path": "/attack.md", "content": "a" * (31 * MB)})
    wire("POST", f"{target.route}/memories", body=body).refused(400, "invalid_request_error")


def test_an_endless_chunked_body_is_cut_off(wire, target):
    sent = 0

    def chunks():
        nonlocal sent
        yield b'{"path": "/attack.md", "content": "'
        while sent < 256 * MB:
            sent += MB
            yield b"a" * MB

    with contextlib.suppress(http.client.HTTPException, ConnectionError):
        wire("POST", f"{target.route}/memories", body=chunks()).refused(413, "request_too_large")
    assert sent < 256 * MB


def test_a_large_body_without_a_key_is_refused_as_such(wire, target):
    """The key is judged before anything is read, so that a stranger cannot fill the memory."""
    body = dumps({"path": "/attack.md", "content": "a" * (20 * MB)})
    with contextlib.suppress(http.client.HTTPException, ConnectionError):  # hung up on while still sending
        wire("POST", f"{target.route}/memories", auth=None, body=body).refused(401, "authentication_error")


FLOODS = {
    "500 headers": [(f"x-flood-{i}", "x") for i in range(500)],
    "5,000 headers": [(f"x-flood-{i}", "x") for i in range(5_000)],
    "a header of 1 MB": [("x-flood", "x" * MB)],
    "a credential of 1 MB": [("authorization", "Bearer " + "x" * MB)],
    "a beta list of 20,000 values": [("anthropic-beta", ",".join(f"v{i}" for i in range(20_000)))],
    "1,000 beta headers": [("anthropic-beta", f"v{i}") for i in range(1_000)],
}


@pytest.mark.parametrize("headers", FLOODS.values(), ids=FLOODS)
def test_a_flood_of_headers_is_refused_or_ignored(wire, target, headers):
    with contextlib.suppress(http.client.HTTPException, ConnectionError):  # cutting the line is an answer too
        answer = wire("GET", f"{target.route}/memories", headers=headers)
        assert answer.status in (200, 400, 401, 404, 431)


LONG = "a" * 100_000
ODD_URLS = [
    f"/v1/memory_stores/{LONG}",
    f"/v1/memory_stores?path_prefix=/{LONG}/",
    "/v1/memory_stores?" + "a=1&" * 20_000,
    "/v1/memory_stores/%00",
    "/v1/memory_stores/%FF%FE",
    "/v1/memory_stores/%zz",
    "/v1/memory_stores?limit=%00",
    "/v1/memory_stores?limit=%FF",
    "/v1/memory_stores?page=%FF%00",
    "/v1/memory_stores/..%2f..%2f..%2fetc%2fpasswd",
    "/v1/memory_stores/../../../etc/passwd",
    "/v1/./memory_stores",
    "/v1/memory_stores;x=1",
    "/v1/memory_stores?=&&==&",
    "http://elsewhere.example/v1/memory_stores",
    "*",
]


@pytest.mark.parametrize("url", ODD_URLS, ids=lambda url: url[:40])
def test_an_odd_url_is_no_server_error(wire, target, url):
    answer = wire("GET", url)
    assert answer.status < 500 and not 300 <= answer.status < 400


@pytest.mark.parametrize("prefix", ["%00", "/%00/", "%FF", "/%FF/", "/%ED%A0%80/", "/%C0%80/"])
def test_a_prefix_that_is_no_text_is_refused(wire, target, prefix):
    wire("GET", f"{target.route}/memories?path_prefix={prefix}").refused(400, "invalid_request_error")


NUMBERS = [b"1e999999", b"-1e999999", b"9" * 10_000, b"NaN", b"-", b"0x10", b"01", b"true", b"{}"]


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: value.decode()[:12])
def test_a_value_of_the_wrong_type_is_refused(wire, target, value):
    wire("POST", f"{target.route}/memories", body=b'{"path": "/attack.md", "content": ' + value + b"}").refused(
        400, "invalid_request_error"
    )


BAD_FRAMING = {
    "negative length": ([("content-length", "-1")], CREATE),
    "length with an exponent": ([("content-length", "1e2")], CREATE),
    "two lengths": ([("content-length", str(len(CREATE))), ("content-length", "3")], CREATE),
    "huge length": ([("content-length", "9" * 40)], CREATE),
    "body shorter than its length": ([("content-length", str(len(CREATE) + 1))], CREATE),
    "chunk without a size": ([("transfer-encoding", "chunked")], b"zz\r\n" + CREATE + b"\r\n0\r\n\r\n"),
    "chunk of an absurd size": ([("transfer-encoding", "chunked")], b"f" * 20 + b"\r\n" + CREATE),
    "chunks without an end": ([("transfer-encoding", "chunked")], b"%x\r\n" % len(CREATE) + CREATE + b"\r\n"),
    "unknown transfer coding": ([("transfer-encoding", "gzip, identity")], CREATE),
    "NUL in a header": ([("x-odd", "a\0b"), ("content-length", str(len(CREATE)))], CREATE),
}


@pytest.mark.parametrize(("headers", "body"), BAD_FRAMING.values(), ids=BAD_FRAMING)
def test_a_request_with_bad_framing_writes_nothing(victim, target, headers, body):
    answer = exchange(victim.port, create_request(victim, target, headers, body))
    assert not answer.startswith(b"HTTP/1.1 2")


GARBAGE = {
    "random bytes": os.urandom(4096),
    "NULs": bytes(4096),
    "line ends": b"\r\n" * 2048,
    "TLS hello": bytes.fromhex("16030100f1010000ed0303") + os.urandom(240),
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "other protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "future version": b"GET / HTTP/9.9\r\nhost: x\r\n\r\n",
    "no version": b"GET /v1/memory_stores\r\n\r\n",
    "endless method": b"A" * 100_000,
    "endless header": b"GET / HTTP/1.1\r\nx: " + b"a" * 2_000_000,
    "half a request line": b"GET /v1/mem",
    "proxy request": b"CONNECT elsewhere.example:443 HTTP/1.1\r\nhost: elsewhere.example:443\r\n\r\n",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_no_request(victim, target, data):
    answer = exchange(victim.port, data)
    assert not answer.startswith((b"HTTP/1.1 2", b"HTTP/1.1 500"))


@pytest.mark.parametrize("share", [0, 1, 0.5], ids=["nothing", "one byte", "half"])
def test_a_sender_who_falls_silent_writes_nothing_and_blocks_nobody(victim, wire, target, share):
    body = CREATE[: share if isinstance(share, int) else len(CREATE) // 2]
    request = create_request(victim, target, [("content-length", str(len(CREATE)))], body)
    silent = [connect(victim.port) for _ in range(50)]
    try:
        for sock in silent:
            sock.sendall(request)
        for _ in range(20):
            wire("GET", f"{target.route}/memories").ok()
    finally:
        for sock in silent:
            sock.close()


def test_200_idle_connections_keep_nobody_out(victim, wire, target):
    idle = [connect(victim.port) for _ in range(200)]
    try:
        wire("GET", f"{target.route}/memories").ok()
    finally:
        for sock in idle:
            sock.close()


@pytest.mark.long
@pytest.mark.parametrize("cut", ["in the header", "in the body"])
def test_a_silent_sender_is_hung_up_on(victim, target, cut):
    request = create_request(victim, target, [("content-length", str(len(CREATE)))], CREATE[:5])
    with connect(victim.port, timeout=180) as sock:
        sock.sendall(request[:-5] if cut == "in the body" else request[:60])
        with contextlib.suppress(ConnectionError):
            while sock.recv(4096):  # a TimeoutError here is the failure
                pass
