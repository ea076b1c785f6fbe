"""Caps: of the server and of a workspace, exact under load."""

import pytest

from api import STORES, Api, Shelf, invalid, nowhere, refused
from kit.expect import together
from kit.wire import Wire

WORKSPACES = "/stele/v1/workspaces"


@pytest.fixture
def new_workspace(wire):
    """`new_workspace(3)`: the answer that shows its admin key, and the dialect with it."""

    def make(cap=None):
        made = wire("POST", WORKSPACES, json={"name": "capped", "max_memories_per_store": cap}).ok(201)
        return made, Api(wire.as_key(made["key"]))

    return make


def full(answer, limit):
    details = invalid(answer, "memory_store_id")["details"]
    assert (details["reason"], details["limit"]) == ("store_full", limit)


def test_the_cap_of_the_server_is_exact_under_load(fresh_server):
    server = fresh_server(env={"STELE_MAX_MEMORIES_PER_STORE": "20"})
    shelf = Shelf.made(Api(Wire(server.port, server.admin_key)))
    first = shelf.put("/first.md")
    answers = together(*(lambda i=i: shelf.create(f"/{i}.md") for i in range(30)))
    assert sorted(answer.status for answer in answers) == [201] * 19 + [400] * 11
    for answer in answers:
        if answer.status == 400:
            full(answer, 20)
    shelf.edited(first, content="still editable")
    shelf.drop(first)
    shelf.put("/room.md")
    full(shelf.restore(first["head_version_id"]), 20)
    assert len(shelf.paths()) == 20


def test_a_workspace_has_a_cap_of_its_own_for_both_dialects(new_workspace, wire):
    made, api = new_workspace(2)
    assert made["max_memories_per_store"] == 2
    shelf = Shelf.made(api)
    shelf.put("/a.md"), shelf.put("/b.md")
    full(shelf.create("/c.md"), 2)
    claude = wire.as_key(made["key"])
    (store,) = claude("GET", "/v1/memory_stores").ok()["data"]
    answer = claude("POST", f"/v1/memory_stores/{store['id']}/memories", json={"path": "/c.md", "content": "x"})
    assert answer.refused(400, "invalid_request_error")["details"]["error_code"] == "memory_limit_reached"


def test_the_cap_of_a_workspace_changes_at_once_and_goes_back_to_the_servers(new_workspace, wire):
    made, api = new_workspace()
    assert "max_memories_per_store" not in made
    shelf = Shelf.made(api)
    shelf.put("/a.md")
    one = f"{WORKSPACES}/{made['workspace_id']}"
    assert wire("POST", one, json={"max_memories_per_store": 1}).ok()["max_memories_per_store"] == 1
    full(shelf.create("/b.md"), 1)
    assert wire("POST", one, json={"name": "renamed"}).ok()["max_memories_per_store"] == 1
    changed = wire("POST", one, json={"max_memories_per_store": None}).ok()
    assert changed["name"] == "renamed" and "max_memories_per_store" not in changed and "key" not in changed
    shelf.put("/b.md")
    assert changed in wire("GET", WORKSPACES).ok()["workspaces"]


def test_only_admins_of_the_first_workspace_change_workspaces(new_workspace, wire, new_key):
    made, _ = new_workspace()
    one = f"{WORKSPACES}/{made['workspace_id']}"
    for key in (made["key"], new_key(role="developer")["key"]):
        wire.as_key(key)("POST", one, json={"max_memories_per_store": 1}).refused_flat(403, "forbidden")
    for cap in (0, -1, 1.5, "many", 2**63):
        answer = wire("POST", one, json={"max_memories_per_store": cap}).refused_flat(400, "invalid_request")
        assert answer["details"]["field"] == "max_memories_per_store"
    wire("POST", one, json={"cap": 1}).refused_flat(400, "invalid_request")
    wire("POST", f"{WORKSPACES}/me", json={}).refused_flat(400, "invalid_request")
    wire("POST", f"{WORKSPACES}/{nowhere()}", json={"name": "x"}).refused_flat(404, "not_found")


def test_the_other_caps_are_refused_in_this_dialect_too(fresh_server):
    server = fresh_server(
        env={"STELE_MAX_STORES_PER_WORKSPACE": "1", "STELE_MAX_BYTES_PER_STORE": "10", "STELE_MAX_VERSIONS_PER_STORE": "2"}
    )
    shelf = Shelf.made(Api(Wire(server.port, server.admin_key)))
    details = refused(shelf.api("POST", STORES, {"name": "second"}), 400, "invalid_request")["details"]
    assert (details["reason"], details["limit"]) == ("workspace_full", 1)
    memory = shelf.put("/a.md", "123456")
    details = invalid(shelf.create("/b.md", "12345"), "memory_store_id")["details"]
    assert (details["reason"], details["limit"]) == ("store_bytes_full", 10)
    shelf.edited(memory, content="1")
    details = invalid(shelf.edit(memory, content="2"), "memory_store_id")["details"]
    assert (details["reason"], details["limit"]) == ("versions_full", 2)
