"""Fixtures: one server for most tests, own ones for tests that stop, kill or configure theirs."""

from __future__ import annotations

import os

import pytest
from anthropic import Anthropic

from kit.agents import House
from kit.server import STELE_BIN, Server
from kit.tree import Tree
from kit.wire import Wire

# The SDK reads these behind the caller's back; a developer's own account must not leak into a test.
for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
    del os.environ[name]


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
    """`fresh_server(env=..., ...)`: a running server of the test's own on an empty directory."""
    made: list[Server] = []

    def make(*, start: bool = True, **options) -> Server:
        home = tmp_path / f"server{len(made)}"
        made.append(Server(home, **options))
        return made[-1].start() if start else made[-1]

    yield make
    for own in made:
        own.close()


@pytest.fixture(scope="session")
def new_client():
    """`new_client(server, ...)`: an official client that repeats nothing unless told to."""
    made: list[Anthropic] = []

    def make(of: Server, *, key: str | None = None, **options) -> Anthropic:
        options = {"base_url": of.url, "api_key": key or of.admin_key, "max_retries": 0, "timeout": 60} | options
        made.append(Anthropic(**options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def sdk(server, new_client) -> Anthropic:
    return new_client(server)


@pytest.fixture(scope="session")
def wire(server) -> Wire:
    return Wire(server.port, server.admin_key)


@pytest.fixture
def tree(sdk) -> Tree:
    """An empty store on the shared server."""
    return Tree.planted(sdk)


@pytest.fixture
def new_tree(sdk):
    return lambda **fields: Tree.planted(sdk, **fields)


@pytest.fixture
def house(sdk, wire):
    """An agent in a self-hosted environment of its own."""
    made = House(sdk, wire)
    yield made
    made.close()


@pytest.fixture(scope="session")
def new_key(wire):
    """`new_key(role="reader")` or `new_key(permissions=[...])`: the answer that shows the key once."""
    return lambda **grant: wire("POST", "/stele/v1/api_keys", json={"name": "e2e"} | grant).ok(201)


@pytest.fixture(scope="session")
def elsewhere(wire) -> Wire:
    """The admin of a second workspace on the shared server."""
    return wire.as_key(wire("POST", "/stele/v1/workspaces", json={"name": "elsewhere"}).ok(201)["key"])
