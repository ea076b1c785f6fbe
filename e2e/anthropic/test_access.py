"""No route without a key, nothing across workspaces, no trace of reading, archived stores, exact caps."""

import pytest

from kit.expect import bad_request, eventually, together
from kit.ids import unknown_id, unknown_uuid
from kit.routes import KEYS, MEMORY_ROUTES, OWN_ROUTES, Route
from kit.tree import Tree
from kit.wire import Wire, dumps

BY_ID = [route for route in MEMORY_ROUTES + OWN_ROUTES if route.by_id]


@pytest.fixture(scope="module")
def target(sdk, new_key):
    """Ids of things that exist, for routes that must not reach them."""
    tree = Tree.planted(sdk)
    memory = tree.put("/a.md")
    version = memory.memory_version_id
    tree.edit(memory.id, content="y")
    ids = {"store": tree.id, "memory": memory.id, "version": version, "key": new_key(role="reader")["api_key_id"]}
    return tree, ids


def send(wire: Wire, route: Route, ids: dict[str, str], **options):
    body = None if route.body is None else dumps(route.body)
    return wire(route.method, route.at(**ids), body=body, **options)


@pytest.fixture(scope="module")
def revoked(wire, new_key):
    made = new_key(role="admin")
    assert wire("DELETE", f"{KEYS}/{made['api_key_id']}").status == 204
    dead = wire.as_key(made["key"])
    assert eventually(lambda: dead("GET", KEYS).status == 401, 5)
    return dead


@pytest.mark.case("AC-01")
@pytest.mark.parametrize("credential", ["none", "unknown", "revoked", "empty bearer"])
@pytest.mark.parametrize("route", MEMORY_ROUTES + OWN_ROUTES, ids=str)
def test_no_route_opens_without_a_key(wire, revoked, target, route, credential):
    tree, ids = target
    answer = {
        "none": lambda: send(wire, route, ids, auth=None),
        "unknown": lambda: send(wire.as_key("rma_" + "A" * 43), route, ids),
        "revoked": lambda: send(revoked, route, ids),
        "empty bearer": lambda: send(wire, route, ids, auth=None, headers=[("authorization", "Bearer ")]),
    }[credential]()
    if route.own:
        answer.refused_flat(401, "unauthorized")
    else:
        answer.refused(401, "authentication_error")
    assert tree.operations() == ["created", "modified"]


@pytest.mark.case("AC-02")
@pytest.mark.parametrize("route", BY_ID, ids=str)
def test_ids_of_another_workspace_do_not_exist(elsewhere, target, route):
    """The two answers differ in nothing but the request id and the id that the caller sent."""
    tree, ids = target
    ghosts = {
        "store": unknown_id("memstore"),
        "memory": unknown_id("mem"),
        "version": unknown_id("memver"),
        "key": str(unknown_uuid()),
    }

    def neutral(chosen: dict[str, str]) -> str:
        answer = send(elsewhere, route, chosen)
        answer.refused_flat(404, "not_found") if route.own else answer.refused(404, "not_found_error")
        text = answer.text.replace(answer.request_id, "<request>")
        for kind, value in chosen.items():
            text = text.replace(value, f"<{kind}>")
        return text

    assert neutral(ids) == neutral(ghosts)
    assert tree.operations() == ["created", "modified"] and tree.texts() == {"/a.md": "y"}


@pytest.mark.case("AC-02")
def test_a_foreign_memory_does_not_show_through_an_own_store(server, new_client, elsewhere, target):
    _, ids = target
    own = Tree.planted(new_client(server, key=elsewhere.key))
    for foreign in (ids["memory"], unknown_id("mem")):
        elsewhere("GET", f"{own.route}/memories/{foreign}").refused(404, "not_found_error")
        assert elsewhere("GET", f"{own.route}/memory_versions", query={"memory_id": foreign}).ok()["data"] == []


@pytest.mark.case("AC-03")
def test_reading_leaves_no_trace(wire, tree):
    first, second = tree.put("/a.md"), tree.put("/b/c.md", "y")
    tree.edit(first.id, content="z")
    reads = [
        (tree.route, None),
        (f"{tree.route}/memories", {"view": "full"}),
        (f"{tree.route}/memories", {"depth": 1}),
        (f"{tree.route}/memories/{first.id}", None),
        (f"{tree.route}/memories/{second.id}", {"view": "basic"}),
        (f"{tree.route}/memory_versions", {"view": "full"}),
        (f"{tree.route}/memory_versions/{first.memory_version_id}", None),
    ]
    with wire.kept_alive() as call:
        before = [call("GET", path, query=query).body for path, query in reads]
        for _ in range(100):
            for path, query in reads:
                call("GET", path, query=query).ok()
        assert [call("GET", path, query=query).body for path, query in reads] == before


@pytest.mark.case("AC-08")
def test_an_archived_store_can_be_read_cleaned_and_nothing_else(wire, tree):
    memory = tree.put("/a.md", "1\n")
    tree.edit(memory.id, content="2\n")
    tree.archive()
    refused = [
        wire("POST", f"{tree.route}/memories", json={"path": "/b.md", "content": "x"}),
        wire("POST", f"{tree.route}/memories/{memory.id}", json={"content": "x"}),
        wire("POST", tree.route, json={"name": "New"}),
    ]
    for answer in refused:
        answer.refused(400, "invalid_request_error")
    assert tree.texts() == {"/a.md": "2\n"}
    assert tree.redact(memory.memory_version_id).content is None
    with bad_request():
        tree.redact(tree.read(memory.id).memory_version_id)
    assert tree.drop(memory.id).id == memory.id
    assert tree.operations() == ["created", "modified", "deleted"]


@pytest.mark.case("AC-09")
def test_the_memory_cap_is_exact_under_load(fresh_server, new_client):
    server = fresh_server(env={"STELE_MAX_MEMORIES_PER_STORE": "100"})
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    for i in range(90):
        tree.put(f"/old{i}.md")

    def create(i):
        return lambda: wire("POST", f"{tree.route}/memories", json={"path": f"/n{i}.md", "content": "x"})

    answers = together(*(create(i) for i in range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 10 + [400] * 40
    for answer in answers:
        if answer.status == 400:
            assert answer.refused(400, "invalid_request_error")["details"]["error_code"] == "memory_limit_reached"
    memories = tree.list()
    assert len(memories) == 100
    tree.edit(memories[0].id, content="still editable")
    tree.drop(memories[1].id)
    tree.put("/room.md")
    assert len(tree.list()) == 100
