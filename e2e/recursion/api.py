"""The dialect as bare HTTP, and one store seen through it in short words."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from kit.ids import unknown_uuid
from kit.wire import Answer, Wire

BASE = "/managed-agents/v1"
STORES = "/memory_stores"
STORE = STORES + "/{store}"
MEMORIES = STORE + "/memories"
MEMORY = MEMORIES + "/{memory}"
VERSIONS = STORE + "/memory_versions"
VERSION = VERSIONS + "/{version}"


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    needs: str  # the permission
    body: dict | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def by_id(self) -> bool:
        return "{" in self.path


ROUTES = [
    Route("GET", STORES, "read"),
    Route("POST", STORES, "create", {"name": "made"}),
    Route("GET", STORE, "read"),
    Route("POST", STORE, "update", {"description": "changed"}),
    Route("POST", STORE + "/archive", "update"),
    Route("DELETE", STORE, "delete"),
    Route("GET", MEMORIES, "read"),
    Route("POST", MEMORIES, "create", {"path": "/made.md", "summary": "s", "content": "x"}),
    Route("GET", STORE + "/memory?path=/a.md", "read"),
    Route("GET", MEMORY, "read"),
    Route("POST", MEMORY, "update", {"content": "changed"}),
    Route("DELETE", MEMORY, "delete"),
    Route("GET", VERSIONS, "read"),
    Route("GET", VERSION, "read"),
    Route("POST", VERSION + "/restore", "update"),
    Route("POST", VERSION + "/redact", "delete"),
]


class Api:
    """Calls below `/managed-agents/v1` with one key; checks what every answer must carry."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def __call__(
        self,
        method: str,
        path: str,
        json: object = None,
        *,
        query: dict | None = None,
        body: bytes | None = None,
        auth: str | None = "bearer",
        headers: Iterable[tuple[str, str | bytes]] = (),
    ) -> Answer:
        answer = self.wire(
            method, BASE + path, json=json, query=query, body=body, auth=auth, beta=None, headers=headers
        )
        assert answer.headers["x-request-id"] == answer.request_id
        assert uuid.UUID(answer.headers["recursion-organization-id"])
        assert uuid.UUID(answer.headers["recursion-tenant-id"])
        return answer

    def ok(self, method: str, path: str, json: object = None, *, status: int = 200, **options):
        """The parsed body of a success; nothing of it is null, and a 204 has not one byte."""
        answer = self(method, path, json, **options)
        assert answer.status == status, f"{method} {path}: {answer.status} {answer.text[:500]}"
        if status == 204:
            assert answer.body == b""
            return None
        assert answer.headers["content-type"] == "application/json"
        body = answer.json()
        assert not holds_null(body), "what is unset is left out"
        return body

    def send(self, route: Route, ids: dict[str, str], **options) -> Answer:
        return self(route.method, route.path.format(**ids), route.body, **options)


def holds_null(value: object) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(holds_null, parts))


def refused(answer: Answer, status: int, code: str, field: str | None = None) -> dict:
    """The body of exactly this refusal, after checking the envelope."""
    assert (answer.status, answer.json()["code"]) == (status, code), answer.text[:500]
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert set(body) == {"code", "message", "details"} and body["message"], body
    assert body["details"]["requestId"] == answer.request_id
    assert body["details"].get("field") == field, body
    return body


def invalid(answer: Answer, field: str) -> dict:
    return refused(answer, 400, "invalid_request", field)


class Shelf:
    """One store."""

    def __init__(self, api: Api, store: dict) -> None:
        self.api = api
        self.id = store["memory_store_id"]
        self.name = store["name"]
        self.route = f"{STORES}/{self.id}"

    @classmethod
    def made(cls, api: Api, **fields) -> Shelf:
        return cls(api, api.ok("POST", STORES, {"name": f"e2e {uuid.uuid4().hex[:8]}"} | fields, status=201))

    def create(self, path: str, content: str = "x", summary: str = "s") -> Answer:
        body = {"path": path, "summary": summary, "content": content}
        return self.api("POST", f"{self.route}/memories", body)

    def put(self, path: str, content: str = "x", summary: str = "s") -> dict:
        answer = self.create(path, content, summary)
        assert answer.status == 201, answer.text
        return answer.json()

    def edit(self, memory: dict, **change) -> Answer:
        return self.api("POST", f"{self.route}/memories/{memory['memory_id']}", change)

    def edited(self, memory: dict, **change) -> dict:
        answer = self.edit(memory, **change)
        assert answer.status == 200, answer.text
        return answer.json()

    def drop(self, memory: dict) -> Answer:
        return self.api("DELETE", f"{self.route}/memories/{memory['memory_id']}")

    def read(self, memory: dict) -> Answer:
        return self.api("GET", f"{self.route}/memories/{memory['memory_id']}")

    def at(self, path: str) -> Answer:
        return self.api("GET", f"{self.route}/memory", query={"path": path})

    def browse(self, **query) -> list[dict]:
        return self.api.ok("GET", f"{self.route}/memories", query=query)["entries"]

    def paths(self, **query) -> list[str]:
        return [entry["path"] for entry in self.browse(**({"depth": 0} | query))]

    def page(self, **query) -> Answer:
        return self.api("GET", f"{self.route}/memory_versions", query=query)

    def history(self, memory: dict | None = None, limit: int = 100) -> list[dict]:
        """Newest first, through all pages."""
        query = {"limit": limit} | ({"memory_id": memory["memory_id"]} if memory else {})
        versions: list[dict] = []
        while True:
            page = self.page(**query).ok()
            versions += page["memory_versions"]
            if "next_cursor" not in page:
                return versions
            assert len(page["memory_versions"]) == limit
            query["cursor"] = page["next_cursor"]

    def operations(self, memory: dict | None = None) -> list[str]:
        """Oldest first."""
        return [version["operation"] for version in reversed(self.history(memory))]

    def version(self, version_id: str) -> Answer:
        return self.api("GET", f"{self.route}/memory_versions/{version_id}")

    def restore(self, version_id: str) -> Answer:
        return self.api("POST", f"{self.route}/memory_versions/{version_id}/restore")

    def redact(self, version_id: str) -> Answer:
        return self.api("POST", f"{self.route}/memory_versions/{version_id}/redact")

    def archive(self) -> None:
        self.api.ok("POST", f"{self.route}/archive", status=204)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def nowhere() -> str:
    """A well-formed id that was never given out."""
    return str(unknown_uuid())
