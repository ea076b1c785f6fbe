"""No route without a key, nothing across workspaces, no trace of reading, roles, archived stores."""

import pytest

from api import ROUTES, Shelf, Api, invalid, nowhere, refused
from kit.expect import eventually

PERMISSIONS = {
    "admin": {"read", "create", "update", "delete"},
    "developer": {"read", "create", "update", "delete"},
    "contributor": {"read", "create", "update"},
    "reader": {"read"},
}
LATER = ["/vaults", "/skills", "/nothing/at/all"]


@pytest.fixture(scope="module")
def target(api):
    """Ids of things that exist, for routes that must not reach them."""
    shelf = Shelf.made(api)
    memory = shelf.put("/a.md")
    shelf.edited(memory, content="y")
    return shelf, {"store": shelf.id, "memory": memory["memory_id"], "version": memory["head_version_id"]}


@pytest.fixture(scope="module")
def revoked(wire, new_key):
    made = new_key(role="admin")
    assert wire("DELETE", f"/stele/v1/api_keys/{made['api_key_id']}").status == 204
    dead = Api(wire.as_key(made["key"]))
    assert eventually(lambda: dead("GET", "/memory_stores").status == 401, 5)
    return dead


@pytest.mark.case("AC-01")
@pytest.mark.parametrize("credential", ["none", "unknown", "revoked", "empty bearer"])
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_no_route_opens_without_a_key(api, wire, revoked, target, route, credential):
    shelf, ids = target
    answer = {
        "none": lambda: api.send(route, ids, auth=None),
        "unknown": lambda: Api(wire.as_key("rma_" + "A" * 43)).send(route, ids),
        "revoked": lambda: revoked.send(route, ids),
        "empty bearer": lambda: api.send(route, ids, auth=None, headers=[("authorization", "Bearer ")]),
    }[credential]()
    refused(answer, 401, "unauthorized")
    assert shelf.operations() == ["create", "update"]


@pytest.mark.parametrize("path", LATER)
def test_what_is_not_there_is_not_found_and_asks_for_a_key_first(api, path):
    for method in ("GET", "POST", "PATCH", "DELETE"):
        refused(api(method, path, auth=None), 401, "unauthorized")
        refused(api(method, path), 404, "not_found")


@pytest.mark.case("AC-02")
@pytest.mark.parametrize("route", [route for route in ROUTES if route.by_id], ids=str)
def test_ids_of_another_workspace_do_not_exist(elsewhere, target, route):
    """The two answers differ in nothing but the request id and the id that the caller sent."""
    shelf, ids = target

    def neutral(chosen: dict[str, str]) -> str:
        answer = elsewhere.send(route, chosen)
        refused(answer, 404, "not_found")
        text = answer.text.replace(answer.request_id, "<request>")
        for kind, value in chosen.items():
            text = text.replace(value, f"<{kind}>")
        return text

    assert neutral(ids) == neutral({kind: nowhere() for kind in ids})
    assert shelf.operations() == ["create", "update"] and shelf.at("/a.md").json()["content"] == "y"


@pytest.mark.case("AC-02")
def test_what_is_in_a_foreign_store_does_not_show_through_an_own_one(elsewhere, target):
    _, ids = target
    own = Shelf.made(elsewhere)
    for memory, version in ((ids["memory"], ids["version"]), (nowhere(), nowhere())):
        refused(elsewhere("GET", f"{own.route}/memories/{memory}"), 404, "not_found")
        refused(elsewhere("GET", f"{own.route}/memory_versions/{version}"), 404, "not_found")
        assert elsewhere.ok("GET", f"{own.route}/memory_versions", query={"memory_id": memory}) == {"memory_versions": []}


@pytest.mark.case("AC-03")
def test_reading_leaves_no_trace(wire, shelf):
    first, second = shelf.put("/a.md"), shelf.put("/b/c.md", "y")
    shelf.edited(first, content="z")
    reads = [
        shelf.route,
        f"{shelf.route}/memories",
        f"{shelf.route}/memories?depth=0",
        f"{shelf.route}/memories/{first['memory_id']}",
        f"{shelf.route}/memory?path=/b/c.md",
        f"{shelf.route}/memory_versions",
        f"{shelf.route}/memory_versions/{first['head_version_id']}",
    ]
    with wire.kept_alive() as call:
        call = Api(call)
        before = [call("GET", path).body for path in reads]
        for _ in range(100):
            for path in reads:
                call.ok("GET", path)
        assert [call("GET", path).body for path in reads] == before


@pytest.mark.case("AC-04")
@pytest.mark.parametrize("role", PERMISSIONS)
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_role_may_do_what_its_permissions_say(api, as_role, route, role):
    shelf = Shelf.made(api)
    memory = shelf.put("/a.md")
    shelf.edited(memory, content="y")
    ids = {"store": shelf.id, "memory": memory["memory_id"], "version": memory["head_version_id"]}
    answer = as_role(role).send(route, ids)
    if route.needs in PERMISSIONS[role]:
        assert answer.status in (200, 201, 204), answer.text
    else:
        refused(answer, 403, "forbidden")
        assert shelf.operations() == ["create", "update"]


@pytest.mark.case("AC-04")
def test_the_permission_is_judged_before_the_object_is_looked_up(as_role):
    refused(as_role("reader")("DELETE", f"/memory_stores/{nowhere()}"), 403, "forbidden")
    refused(as_role("reader")("DELETE", "/memory_stores/not-an-id"), 403, "forbidden")


@pytest.mark.case("AC-08")
def test_an_archived_store_can_be_read_and_redacted_and_nothing_else(shelf):
    memory = shelf.put("/a.md", "1\n")
    head = shelf.edited(memory, content="2\n")
    shelf.archive()
    for answer in (
        shelf.create("/b.md"),
        shelf.edit(memory, content="x"),
        shelf.drop(memory),
        shelf.restore(memory["head_version_id"]),
        shelf.api("POST", shelf.route, {"name": "New"}),
    ):
        invalid(answer, "memory_store_id")
    assert shelf.read(memory).json() == head
    assert shelf.redact(memory["head_version_id"]).status == 204
    refused(shelf.redact(head["head_version_id"]), 409, "conflict", "memory_version_id")
    shelf.archive()
    shelf.api.ok("DELETE", shelf.route, status=204)
