"""Stele's own routes for keys and workspaces."""

import datetime
import re
import uuid

import pytest

from kit.agents import attach
from kit.expect import eventually
from kit.ids import unknown_uuid, uuid_of
from kit.routes import KEYS, PERMISSIONS, STORES, WORKSPACES

FOUR = {"read", "create", "update", "delete"}


@pytest.mark.parametrize("role", PERMISSIONS)
def test_a_key_of_a_role_is_shown_once(wire, new_key, role):
    made = new_key(name="for ci", role=role)
    assert set(made) == {"api_key_id", "name", "role", "permissions", "key", "created_at"}
    assert (made["name"], made["role"]) == ("for ci", role)
    assert set(made["permissions"]) == PERMISSIONS[role] & FOUR
    assert re.fullmatch(r"rma_[A-Za-z0-9_-]{43}", made["key"])
    assert str(uuid.UUID(made["api_key_id"])) == made["api_key_id"]
    answer = wire("GET", KEYS)
    (listed,) = [key for key in answer.ok()["api_keys"] if key["api_key_id"] == made["api_key_id"]]
    assert listed["name"] == "for ci" and made["key"] not in answer.text
    wire.as_key(made["key"])("GET", STORES).ok()


def test_a_key_with_a_set_of_its_own_has_no_role(new_key):
    made = new_key(permissions=["read", "update"])
    assert "role" not in made and set(made["permissions"]) == {"read", "update"}


def test_the_list_shows_no_secret(wire, new_key):
    secrets = [wire.key, new_key(role="admin")["key"]]
    text = wire("GET", KEYS).text
    assert not any(secret in text for secret in secrets) and '"key"' not in text


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"role": "reader"},
        {"name": "", "role": "reader"},
        {"name": 1, "role": "reader"},
        {"name": "x", "role": "owner"},
        {"name": "x", "permissions": ["fly"]},
        {"name": "x", "permissions": "read"},
        {"name": "x", "role": "reader", "permissions": ["read"]},
        {"name": "x", "role": "reader", "more": 1},
        {"name": "x", "role": "reader", "expires_at": "soon"},
    ],
    ids=str,
)
def test_a_bad_request_for_a_key_makes_none(wire, body):
    before = len(wire("GET", KEYS).ok()["api_keys"])
    wire("POST", KEYS, json=body).refused_flat(400, "invalid_request")
    assert len(wire("GET", KEYS).ok()["api_keys"]) == before


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff"], ids=repr)
def test_a_body_that_is_no_json_object_is_refused(wire, body):
    wire("POST", KEYS, body=body).refused_flat(400, "invalid_json")


def test_a_revoked_key_is_no_key(wire, new_key):
    made = new_key(role="reader")
    answer = wire("DELETE", f"{KEYS}/{made['api_key_id']}")
    assert (answer.status, answer.body) == (204, b"") and answer.request_id.startswith("req_")
    caller = wire.as_key(made["key"])
    assert eventually(lambda: caller("GET", STORES).status == 401, 5)
    caller("GET", STORES).refused(401, "authentication_error")


def test_a_key_that_is_not_there_cannot_be_revoked(wire):
    wire("DELETE", f"{KEYS}/{unknown_uuid()}").refused_flat(404, "not_found")
    assert wire("DELETE", f"{KEYS}/nonsense").status in (400, 404)


def test_a_key_ends_at_its_expiry(wire, new_key):
    expiry = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=3)
    made = new_key(role="reader", expires_at=expiry.isoformat().replace("+00:00", "Z"))
    caller = wire.as_key(made["key"])
    caller("GET", STORES).ok()
    assert eventually(lambda: caller("GET", STORES).status == 401, 15)


def test_a_new_workspace_is_a_world_of_its_own(wire, tree):
    made = wire("POST", WORKSPACES, json={"name": "tenant two"}).ok(201)
    assert set(made) == {"workspace_id", "name", "created_at", "key"} and made["name"] == "tenant two"
    assert str(uuid.UUID(made["workspace_id"])) == made["workspace_id"]
    there = wire.as_key(made["key"])
    assert there("GET", STORES).ok()["data"] == []
    assert len(there("GET", KEYS).ok()["api_keys"]) == 1
    store = there("POST", STORES, json={"name": "theirs"}).ok()
    wire("GET", f"{STORES}/{store['id']}").refused(404, "not_found_error")
    answer = wire("GET", WORKSPACES)
    assert (
        made["workspace_id"] in {w["workspace_id"] for w in answer.ok()["workspaces"]}
        and made["key"] not in answer.text
    )


def test_only_admins_of_the_first_workspace_manage_workspaces(elsewhere):
    elsewhere("GET", WORKSPACES).refused_flat(403, "forbidden")
    elsewhere("POST", WORKSPACES, json={"name": "third"}).refused_flat(403, "forbidden")


def test_a_workspace_needs_a_name(wire):
    for body in ({}, {"name": ""}, {"name": None}, {"name": "x", "more": 1}):
        wire("POST", WORKSPACES, json=body).refused_flat(400, "invalid_request")


def test_own_routes_need_no_beta_header_and_take_both_credentials(wire):
    for auth in ("bearer", "x-api-key"):
        wire("GET", KEYS, beta=None, auth=auth).ok()


def test_a_credential_is_told_what_it_is(wire, house, tree, new_key):
    route = "/stele/v1/self"
    admin = wire("GET", route).ok()
    assert (admin["type"], admin["role"]) == ("api_key", "admin")
    assert admin["permissions"] == ["read", "create", "update", "delete"]
    some = new_key(permissions=["read", "update"])
    own = wire.as_key(some["key"])("GET", route).ok()
    assert (own["api_key_id"], own["permissions"]) == (some["api_key_id"], ["read", "update"]) and "role" not in own
    worker = wire.as_key(house.key)("GET", route).ok()
    assert (worker["type"], worker["permissions"]) == ("environment_key", [])
    session = house.start(attach(tree.id))
    token = wire("POST", f"/stele/v1/sessions/{uuid_of(session.id)}/tokens", json={}).ok(201)["token"]
    inside = wire.as_key(token)("GET", route).ok()
    assert (inside["type"], inside["session_id"]) == ("session_token", str(uuid_of(session.id)))
    assert {admin["workspace_id"]} == {one["workspace_id"] for one in (own, worker, inside)}
    wire.as_key("rma_" + "x" * 43)("GET", route).refused_flat(401, "unauthorized")
