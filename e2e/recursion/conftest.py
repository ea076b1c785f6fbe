"""Fixtures: one server for most tests, own ones for tests that configure theirs. `kit` is the other dialect's."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest
from recursion import create_recursion_client

from api import Api, Shelf
from kit.server import STELE_BIN, Server
from kit.wire import Wire


@pytest.fixture(scope="session", autouse=True)
def _binary():
    if not os.access(STELE_BIN, os.X_OK):
        pytest.exit(f"no stele binary at {STELE_BIN}: build it, or set STELE_BIN", returncode=3)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server that most tests share; they keep apart by making stores of their own."""
    shared = Server(tmp_path_factory.mktemp("shared"))
    try:
        yield shared.start()
    finally:
        shared.close()


@pytest.fixture
def fresh_server(tmp_path):
    """`fresh_server(env=...)`: a running server of the test's own on an empty directory."""
    made: list[Server] = []

    def make(**options) -> Server:
        made.append(Server(tmp_path / f"server{len(made)}", **options))
        return made[-1].start()

    yield make
    for own in made:
        own.close()


@pytest.fixture(scope="session")
def wire(server) -> Wire:
    """Any route, as the admin of the first workspace."""
    return Wire(server.port, server.admin_key)


@pytest.fixture(scope="session")
def api(wire) -> Api:
    return Api(wire)


@pytest.fixture
def shelf(api) -> Shelf:
    """An empty store on the shared server."""
    return Shelf.made(api)


@pytest.fixture(scope="session")
def new_key(wire):
    """`new_key(role="reader")` or `new_key(permissions=[...])`: the answer that shows the key once."""
    return lambda **grant: wire("POST", "/stele/v1/api_keys", json={"name": "e2e"} | grant).ok(201)


@pytest.fixture(scope="session")
def as_role(wire, new_key):
    """`as_role("reader")`: the dialect with a key of that role."""
    return lambda role: Api(wire.as_key(new_key(role=role)["key"]))


@pytest.fixture(scope="session")
def elsewhere(wire) -> Api:
    """The admin of a second workspace on the shared server."""
    made = wire("POST", "/stele/v1/workspaces", json={"name": "elsewhere"}).ok(201)
    return Api(wire.as_key(made["key"]))


class Sdk:
    """The official SDK, which is async, for plain tests: `sdk.create_memory(store_id, body=...)`."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop, **headers: str) -> None:
        self.loop = loop
        self.client = create_recursion_client(
            api_key=server.admin_key, base_url=server.url, headers=headers, timeout_seconds=60
        )

    def __getattr__(self, operation: str):
        method = getattr(self.client.managed_agents, operation)
        return lambda *args, **kwargs: asyncio.run_coroutine_threadsafe(method(*args, **kwargs), self.loop).result(90)


@pytest.fixture(scope="session")
def new_sdk(server):
    """`new_sdk(**headers)`: an official client of the shared server."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield lambda **headers: Sdk(server, loop, **headers)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()


@pytest.fixture(scope="session")
def sdk(new_sdk) -> Sdk:
    return new_sdk()


@pytest.fixture(scope="session")
def claude(wire):
    """The other dialect: `claude("GET", "/{id}")` below its stores."""
    return lambda method, path, **options: wire(method, "/v1/memory_stores" + path, **options)


@pytest.fixture
def there(claude):
    """The other dialect's object for the same store, and for its memory at a path."""

    def find(shelf: Shelf, path: str | None = None):
        stores, page = [], {}
        while page is not None:
            answer = claude("GET", "", query={"limit": 100, "include_archived": "true"} | page).ok()
            stores += [store for store in answer["data"] if store["name"] == shelf.name]
            page = {"page": answer["next_page"]} if answer["next_page"] else None
        (store,) = stores
        if path is None:
            return store
        (memory,) = [m for m in claude("GET", f"/{store['id']}/memories", query={"limit": 100}).ok()["data"] if m["path"] == path]
        return store, memory

    return find
