"""What each role may do: decided by the permission alone, before anything is looked up."""

import uuid

import pytest

from kit.ids import public_id, unknown_id, unknown_uuid
from kit.routes import MEMORY_ROUTES, OWN_ROUTES, PERMISSIONS, STORES
from kit.wire import dumps

ROLES = list(PERMISSIONS)


@pytest.fixture(scope="module")
def as_role(wire, new_key):
    """A caller of each role."""
    return {role: wire.as_key(new_key(role=role)["key"]) for role in ROLES}


@pytest.fixture
def ids(tree):
    memory = tree.put("/a.md")
    tree.edit(memory.id, content="y")
    return {"store": tree.id, "memory": memory.id, "version": memory.memory_version_id}


def send(caller, route, ids):
    return caller(route.method, route.at(**ids), body=None if route.body is None else dumps(route.body))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", MEMORY_ROUTES, ids=str)
def test_a_role_opens_exactly_its_routes(as_role, tree, ids, role, route):
    answer = send(as_role[role], route, ids)
    if route.needs in PERMISSIONS[role]:
        answer.ok()
    else:
        answer.refused(403, "permission_error")
        assert tree.texts() == {"/a.md": "y"} and tree.operations() == ["created", "modified"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("route", [route for route in MEMORY_ROUTES if route.by_id], ids=str)
def test_a_missing_permission_says_nothing_about_what_exists(as_role, role, route):
    ghosts = {"store": unknown_id("memstore"), "memory": unknown_id("mem"), "version": unknown_id("memver")}
    answer = send(as_role[role], route, ghosts)
    if route.needs in PERMISSIONS[role]:
        answer.refused(404, "not_found_error")
    else:
        answer.refused(403, "permission_error")


@pytest.mark.parametrize("role", ["developer", "contributor", "reader"])
@pytest.mark.parametrize("route", [route for route in OWN_ROUTES if route.needs == "admin"], ids=str)
def test_only_an_admin_manages_keys_and_workspaces(as_role, role, route):
    send(as_role[role], route, {"key": str(unknown_uuid())}).refused_flat(403, "forbidden")


def test_an_explicit_set_opens_what_it_names(wire, new_key, tree, ids):
    caller = wire.as_key(new_key(permissions=["read", "delete"])["key"])
    for route in MEMORY_ROUTES:
        if route.needs in ("create", "update"):
            send(caller, route, ids).refused(403, "permission_error")
    caller("GET", f"{tree.route}/memories/{ids['memory']}").ok()
    caller("POST", f"{tree.route}/memory_versions/{ids['version']}/redact").ok()
    caller("DELETE", f"{tree.route}/memories/{ids['memory']}").ok()
    send(caller, OWN_ROUTES[0], {}).refused_flat(403, "forbidden")


def test_one_permission_does_not_bring_another(wire, new_key, tree, ids):
    caller = wire.as_key(new_key(permissions=["create"])["key"])
    caller("POST", f"{tree.route}/memories", json={"path": "/b.md", "content": "x"}).ok()
    caller("GET", STORES).refused(403, "permission_error")


def test_what_a_key_writes_is_signed_with_its_id(wire, new_key, tree):
    made = new_key(role="contributor")
    tree.put("/mine.md")
    wire.as_key(made["key"])("POST", f"{tree.route}/memories", json={"path": "/theirs.md", "content": "x"}).ok()
    author = public_id("apikey", uuid.UUID(made["api_key_id"]))
    assert [(v.path, v.created_by.api_key_id) for v in tree.versions(api_key_id=author)] == [("/theirs.md", author)]
