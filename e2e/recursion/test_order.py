"""The order of checks (spec/recursion.md 3.3): one error per answer, the first found."""

import pytest

from api import STORES, Shelf, invalid, nowhere, refused

TEXT = [("content-type", "text/plain")]


@pytest.fixture
def archived(shelf):
    memory = shelf.put("/a.md")
    shelf.archive()
    return shelf, memory


def test_the_key_comes_before_the_selectors_and_these_before_the_permission(api, as_role):
    other = [("x-organization-id", nowhere())]
    refused(api("POST", STORES, {}, auth=None, headers=other), 401, "unauthorized")
    refused(as_role("reader")("POST", STORES, {}, headers=other), 403, "forbidden", "x-organization-id")
    refused(api("GET", "/nothing", headers=other), 403, "forbidden", "x-organization-id")


def test_the_permission_comes_before_the_body_and_that_before_the_ids(api, as_role):
    path = f"{STORES}/not-an-id/memories"
    refused(as_role("reader")("POST", path, body=b"{", headers=TEXT), 403, "forbidden")
    refused(api("POST", path, body=b"{", headers=TEXT), 415, "unsupported_media_type")
    refused(api("POST", path, body=b"{"), 400, "invalid_json")
    invalid(api("POST", path, {"path": 7}), "memory_store_id")
    invalid(api("POST", f"{STORES}/{nowhere()}/memories/nope", {"path": 7}), "memory_id")
    invalid(api("POST", f"{STORES}/{nowhere()}/memory_versions/nope/restore"), "memory_version_id")
    invalid(api("GET", f"{STORES}/{nowhere()}/memory_versions", query={"memory_id": "nope", "limit": 0}), "memory_id")


def test_what_is_missing_comes_before_the_state_of_the_store(archived):
    shelf, memory = archived
    ghost = {"memory_id": nowhere()}
    for answer in (shelf.edit(ghost, content=""), shelf.drop(ghost), shelf.restore(nowhere()), shelf.redact(nowhere())):
        refused(answer, 404, "not_found")
    for answer in (shelf.edit(memory, content=""), shelf.drop(memory), shelf.restore(memory["head_version_id"])):
        invalid(answer, "memory_store_id")


def test_the_state_of_the_store_comes_before_the_fields(archived):
    shelf, memory = archived
    for body in ({}, {"path": 7}, {"path": "bad"}):
        invalid(shelf.api("POST", f"{shelf.route}/memories", body), "memory_store_id")
    for body in ({"content": ""}, {"precondition": {}}, {"summary": []}):
        invalid(shelf.api("POST", f"{shelf.route}/memories/{memory['memory_id']}", body), "memory_store_id")
    for body in ({"name": ""}, {"name": 7}, {"agent_id": nowhere()}, {"agent_id": "me"}):
        invalid(shelf.api("POST", shelf.route, body), "memory_store_id")


def test_what_is_missing_comes_before_the_fields(api, shelf):
    refused(api("POST", f"{STORES}/{nowhere()}/memories", {"path": 7}), 404, "not_found")
    refused(api("POST", f"{STORES}/{nowhere()}", {"name": ""}), 404, "not_found")
    refused(shelf.edit({"memory_id": nowhere()}, content=""), 404, "not_found")
    for query in ({"path_prefix": "x"}, {"depth": 7}):
        refused(api("GET", f"{STORES}/{nowhere()}/memories", query=query), 404, "not_found")
    for query in ({"limit": 0}, {"cursor": "zzz"}):
        refused(api("GET", f"{STORES}/{nowhere()}/memory_versions", query=query), 404, "not_found")
    refused(api("GET", f"{STORES}/{nowhere()}/memory"), 404, "not_found")


def test_fields_come_before_the_hash_that_before_the_path_and_that_before_the_caps(fresh_server):
    from api import Api
    from kit.wire import Wire

    server = fresh_server(env={"STELE_MAX_MEMORIES_PER_STORE": "2"})
    shelf = Shelf.made(Api(Wire(server.port, server.admin_key)))
    memory, _ = shelf.put("/a.md"), shelf.put("/b.md")
    invalid(shelf.edit(memory, content="", content_sha256="stale", path="/b.md"), "content")
    assert shelf.edited(memory, content="x", content_sha256="stale", path="/a.md") == memory
    refused(shelf.edit(memory, content_sha256="stale", path="/b.md"), 409, "content_sha256_mismatch")
    refused(shelf.edit(memory, path="/b.md"), 409, "conflict", "path")
    refused(shelf.create("/a.md"), 409, "conflict", "path")
    invalid(shelf.create("/c.md"), "memory_store_id")
