"""The beta header: the whole table, for every route that exists so far."""

import pytest

from kit.ids import unknown_id
from kit.routes import MEMORY_ROUTES
from kit.wire import DREAMS, MANAGED, MEMORY, dumps

OPEN = {
    "memory": MEMORY,
    "managed": MANAGED,
    "same twice": f"{MEMORY},{MEMORY}",
    "same in two headers": [MEMORY, MEMORY],
    "blanks and gaps": f" {MEMORY} ,, ",
    "unknown beside it": f"oauth-2025-04-20,{MEMORY}",
    "unknown in a header of its own": ["message-batches-2024-09-24", MANAGED],
    "dreams beside it": f"{DREAMS},{MEMORY}",
}
BOTH = {
    "one header": f"{MEMORY},{MANAGED}",
    "other order": f"{MANAGED}, {MEMORY}",
    "two headers": [MEMORY, MANAGED],
    "with a third": f"oauth-2025-04-20,{MANAGED},{MEMORY}",
}
NONE = {
    "missing": None,
    "empty": "",
    "unknown only": "future-thing-2030-01-01",
    "upper case": MEMORY.upper(),
    "longer": MEMORY + "x",
    "dreams only": DREAMS,
}


@pytest.fixture
def call(wire, tree):
    """A route of the table, called on a memory that exists."""
    memory = tree.put("/a.md")

    def send(route, beta):
        body = None if route.body is None else dumps(route.body)
        path = route.at(store=tree.id, memory=memory.id, version=memory.memory_version_id)
        return wire(route.method, path, body=body, beta=beta)

    return send


@pytest.mark.parametrize("beta", OPEN.values(), ids=OPEN)
def test_either_value_opens_the_memory_routes(wire, tree, beta):
    for path in ("/v1/memory_stores", tree.route, f"{tree.route}/memories", f"{tree.route}/memory_versions"):
        wire("GET", path, beta=beta).ok()
    wire("POST", f"{tree.route}/memories", json={"path": "/b.md", "content": "x"}, beta=beta).ok()


@pytest.mark.parametrize("route", MEMORY_ROUTES, ids=str)
def test_both_values_are_refused_on_every_memory_route(call, tree, route):
    for beta in BOTH.values():
        message = call(route, beta).refused(400, "invalid_request_error")["message"]
        assert MEMORY in message and MANAGED in message
    assert tree.operations() == ["created"]


@pytest.mark.parametrize("route", MEMORY_ROUTES, ids=str)
def test_without_a_value_no_memory_route_exists_and_the_error_names_the_header(call, tree, route):
    for beta in NONE.values():
        message = call(route, beta).refused(404, "not_found_error")["message"]
        assert "anthropic-beta" in message and MEMORY in message
    assert tree.operations() == ["created"]


@pytest.mark.parametrize("family", ["sessions", "agents", "environments"])
@pytest.mark.parametrize("beta", [None, MEMORY, DREAMS], ids=["none", "memory", "dreams"])
def test_agent_routes_stay_closed_without_their_value(wire, family, beta):
    for path in (f"/v1/{family}", f"/v1/{family}/{unknown_id('sesn')}"):
        wire("GET", path, beta=beta).refused(404, "not_found_error")


@pytest.mark.parametrize(
    "beta", [None, MEMORY, MANAGED, f"{MEMORY},{MANAGED}"], ids=["none", "memory", "managed", "both"]
)
def test_dreams_stay_closed_without_their_value(wire, beta):
    wire("GET", "/v1/dreams", beta=beta).refused(404, "not_found_error")
