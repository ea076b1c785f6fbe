"""Every route of the Anthropic dialect and of Stele's own API that exists so far, in one table."""

from __future__ import annotations

from dataclasses import dataclass

STORES = "/v1/memory_stores"
STORE = STORES + "/{store}"
MEMORIES = STORE + "/memories"
MEMORY = MEMORIES + "/{memory}"
VERSIONS = STORE + "/memory_versions"
VERSION = VERSIONS + "/{version}"
KEYS = "/stele/v1/api_keys"
WORKSPACES = "/stele/v1/workspaces"
CONSOLE_SESSION = "/stele/v1/console/session"


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    needs: str  # the permission, or "admin"
    body: dict | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def own(self) -> bool:
        return self.path.startswith("/stele/")

    @property
    def by_id(self) -> bool:
        return "{" in self.path

    def at(self, **ids: str) -> str:
        return self.path.format(**ids)


MEMORY_ROUTES = [
    Route("GET", STORES, "read"),
    Route("POST", STORES, "create", {"name": "made"}),
    Route("GET", STORE, "read"),
    Route("POST", STORE, "update", {"description": "changed"}),
    Route("POST", STORE + "/archive", "update"),
    Route("DELETE", STORE, "delete"),
    Route("GET", MEMORIES, "read"),
    Route("POST", MEMORIES, "create", {"path": "/made.md", "content": "x"}),
    Route("GET", MEMORY, "read"),
    Route("POST", MEMORY, "update", {"content": "changed"}),
    Route("PATCH", MEMORY, "update", {"content": "changed"}),
    Route("DELETE", MEMORY, "delete"),
    Route("GET", VERSIONS, "read"),
    Route("GET", VERSION, "read"),
    Route("POST", VERSION + "/redact", "delete"),
]

OWN_ROUTES = [
    Route("GET", KEYS, "admin"),
    Route("POST", KEYS, "admin", {"name": "made", "role": "reader"}),
    Route("DELETE", KEYS + "/{key}", "admin"),
    Route("GET", WORKSPACES, "admin"),
    Route("POST", WORKSPACES, "admin", {"name": "made"}),
    Route("GET", CONSOLE_SESSION, "read"),
    Route("GET", "/stele/v1/permissions", "read"),
    Route("GET", "/stele/v1/users", "read"),
]

PERMISSIONS = {
    "admin": {"read", "create", "update", "delete", "admin"},
    "developer": {"read", "create", "update", "delete"},
    "contributor": {"read", "create", "update"},
    "reader": {"read"},
}
