"""One memory store seen through the official SDK, in short words."""

from __future__ import annotations

import hashlib
import uuid

from anthropic import Anthropic


class Tree:
    def __init__(self, client: Anthropic, store) -> None:
        self.client = client
        self.id = store.id
        self.route = f"/v1/memory_stores/{store.id}"
        self.stores = client.beta.memory_stores
        self.memories = self.stores.memories
        self.history = self.stores.memory_versions

    @classmethod
    def planted(cls, client: Anthropic, **fields) -> Tree:
        return cls(client, client.beta.memory_stores.create(**({"name": f"e2e {uuid.uuid4().hex[:8]}"} | fields)))

    def put(self, path: str, content: str = "x", **options):
        return self.memories.create(self.id, path=path, content=content, **options)

    def edit(self, memory_id: str, **change):
        return self.memories.update(memory_id, memory_store_id=self.id, **change)

    def read(self, memory_id: str, **options):
        return self.memories.retrieve(memory_id, memory_store_id=self.id, **options)

    def drop(self, memory_id: str, **options):
        return self.memories.delete(memory_id, memory_store_id=self.id, **options)

    def list(self, *, limit: int = 100, **query) -> list:
        """The whole list, through all its pages."""
        return list(self.memories.list(self.id, limit=limit, **query))

    def paths(self, **query) -> list[str]:
        return [item.path for item in self.list(**query)]

    def texts(self) -> dict[str, str]:
        return {memory.path: memory.content for memory in self.list(view="full")}

    def versions(self, memory_id: str | None = None, *, limit: int = 100, **query) -> list:
        """Newest first, through all pages."""
        if memory_id is not None:
            query["memory_id"] = memory_id
        return list(self.history.list(self.id, limit=limit, **query))

    def operations(self, memory_id: str | None = None) -> list[str]:
        """Oldest first."""
        return [version.operation for version in reversed(self.versions(memory_id))]

    def version(self, version_id: str, **options):
        return self.history.retrieve(version_id, memory_store_id=self.id, **options)

    def redact(self, version_id: str):
        return self.history.redact(version_id, memory_store_id=self.id)

    def archive(self):
        return self.stores.archive(self.id)


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def if_hash(value: str) -> dict:
    """A precondition on the content's hash."""
    return {"type": "content_sha256", "content_sha256": value}


def if_text(text: str) -> dict:
    return if_hash(sha(text))
