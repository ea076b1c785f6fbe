"""Plain HTTP, byte for byte, for what the SDK cannot express or would hide."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

MEMORY = "agent-memory-2026-07-22"
MANAGED = "managed-agents-2026-04-01"
DREAMS = "dreaming-2026-04-21"
VERSION = "2026-10-21"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def request_id(self) -> str | None:
        return self.headers.get("request-id")

    def json(self):
        return json.loads(self.body)

    def ok(self, status: int = 200):
        """The parsed body of a success; what every answer must carry is checked on the way."""
        assert self.status == status, f"expected {status}, got {self.status}: {self.text[:500]}"
        assert self.headers.get("content-type", "").startswith("application/json")
        assert self.request_id.startswith("req_")
        return self.json()

    def refused(self, status: int, error_type: str) -> dict:
        """The `error` member of the Anthropic envelope, after checking the envelope."""
        assert self.status == status, f"expected {status} {error_type}, got {self.status}: {self.text[:500]}"
        assert self.headers.get("content-type", "").startswith("application/json")
        body = self.json()
        assert set(body) == {"type", "error", "request_id"} and body["type"] == "error", body
        assert body["request_id"] == self.request_id and self.request_id.startswith("req_")
        assert body["error"]["type"] == error_type and body["error"]["message"], body
        if status == 409:
            assert self.headers.get("x-should-retry") == "false"
        return body["error"]

    def refused_flat(self, status: int, code: str) -> dict:
        """The body of an error on Stele's own routes, after checking its envelope."""
        assert self.status == status, f"expected {status} {code}, got {self.status}: {self.text[:500]}"
        body = self.json()
        assert {"code", "message"} <= set(body) <= {"code", "message", "details"}, body
        assert body["code"] == code and body["message"], body
        assert self.request_id.startswith("req_")
        return body


class Wire:
    """Calls one server with one key. Safe to share between threads unless kept alive."""

    def __init__(self, port: int, key: str, connection: http.client.HTTPConnection | None = None) -> None:
        self.port = port
        self.key = key
        self.connection = connection

    def as_key(self, key: str) -> Wire:
        return Wire(self.port, key)

    @contextlib.contextmanager
    def kept_alive(self) -> Iterator[Wire]:
        """The same on one connection, for one thread."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            yield Wire(self.port, self.key, connection)
        finally:
            connection.close()

    def __call__(
        self,
        method: str,
        path: str,
        *,
        query: dict | None = None,
        json: object = None,
        body: bytes | Iterable[bytes] | None = None,
        beta: str | Iterable[str] | None = MEMORY,
        auth: str | None = "bearer",
        headers: Iterable[tuple[str, str | bytes]] = (),
    ) -> Answer:
        """`path` goes out exactly as given; `json` is for a value, `body` for bytes; `beta` may be several headers."""
        if json is not None:
            body = dumps(json)
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        sent = [("anthropic-version", VERSION), *self._credential(auth)]
        sent += [("anthropic-beta", value) for value in ([beta] if isinstance(beta, str) else beta or ())]
        sent += list(headers)
        if body is not None and not any(name.lower() == "content-type" for name, _ in sent):
            sent.append(("content-type", "application/json"))
        return self._send(method, target, sent, body)

    def _credential(self, auth: str | None) -> list[tuple[str, str]]:
        if auth is None:
            return []
        return [("authorization", f"Bearer {self.key}") if auth == "bearer" else (auth, self.key)]

    def _send(self, method: str, target: str, headers: list[tuple[str, str | bytes]], body) -> Answer:
        connection = self.connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in headers:
                connection.putheader(name, value)
            if isinstance(body, bytes):
                connection.putheader("content-length", str(len(body)))
            elif body is None and method in ("POST", "PUT", "PATCH"):
                connection.putheader("content-length", "0")
            elif body is not None:
                connection.putheader("transfer-encoding", "chunked")
            # A server may refuse a large body before it has read all of it; the answer is still there to be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.endheaders(body, encode_chunked=not isinstance(body, bytes))
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            if self.connection is None:
                connection.close()


def dumps(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
