"""What every answer carries, what errors look like, and routes that are not there."""

import anthropic
import httpx2
import pytest

from kit.expect import bad_request, not_found
from kit.ids import unknown_id
from kit.wire import MEMORY, VERSION


def test_request_ids_are_unique(wire):
    ids = [wire("GET", "/v1/memory_stores", query={"limit": 1}).request_id for _ in range(20)]
    assert len(set(ids)) == 20 and all(i.startswith("req_") for i in ids)


def test_a_request_id_of_the_caller_is_not_taken_over(wire):
    answer = wire("GET", "/v1/memory_stores", headers=[("request-id", "req_mine")])
    assert answer.request_id != "req_mine"


@pytest.mark.parametrize(
    ("status", "method", "path"),
    [
        (404, "GET", "/v1/memory_storez"),
        (404, "GET", "/v1"),
        (404, "POST", "/v1/memory_stores/x/y/z"),
        (404, "GET", "/v1/organizations/me"),
    ],
)
def test_an_unknown_route_is_404_in_the_envelope(wire, status, method, path):
    wire(method, path).refused(status, "not_found_error")


def test_an_unknown_route_of_steles_own_has_the_flat_envelope(wire):
    wire("GET", "/stele/v1/nothing").refused_flat(404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_a_wrong_method_is_answered_in_the_envelope(wire, method):
    answer = wire(method, "/v1/memory_stores", json={"name": "x"})
    assert answer.status in (404, 405)
    assert answer.json()["type"] == "error" and answer.json()["request_id"] == answer.request_id


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/models"])
def test_model_routes_say_to_keep_a_second_client(wire, path):
    method = "POST" if path == "/v1/messages" else "GET"
    message = wire(method, path, json={} if method == "POST" else None, beta=None).refused(404, "not_found_error")[
        "message"
    ]
    assert "client" in message and "model" in message


def test_the_sdk_shows_the_sentence_of_a_model_route(sdk):
    with not_found() as caught:
        sdk.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "hi"}])
    assert "client" in caught.value.api_message
    with not_found():
        sdk.models.list()


def test_the_sdk_finds_every_part_of_an_error(tree):
    missing = unknown_id("mem")
    with not_found() as caught:
        tree.read(missing)
    error = caught.value
    assert isinstance(error, anthropic.NotFoundError) and error.request_id.startswith("req_")
    assert missing in error.api_message


def test_refusals_name_a_stable_code(tree):
    memory = tree.put("/a.md")
    with bad_request() as caught:
        tree.redact(memory.memory_version_id)
    assert caught.value.error_code == "memory_version_is_head"
    tree.archive()
    with bad_request() as caught:
        tree.put("/b.md")
    assert caught.value.error_code == "memory_store_archived"


@pytest.mark.parametrize("body", [None, b"", b"{}"], ids=["nothing", "empty", "object"])
@pytest.mark.parametrize("headers", [[], [("content-type", "application/json")]], ids=["bare", "typed"])
def test_an_action_needs_no_body(wire, tree, body, headers):
    assert wire("POST", f"{tree.route}/archive", body=body, headers=headers).ok()["archived_at"]


def test_a_delete_with_a_content_type_and_no_body_works(wire, tree):
    headers = [("content-type", "application/json")]
    wire("DELETE", f"{tree.route}/memories/{tree.put('/a.md').id}", headers=headers).ok()
    wire("DELETE", tree.route, headers=headers).ok()


@pytest.mark.parametrize("version", [None, "2023-06-01", VERSION, "1999-01-01"])
def test_any_version_header_is_accepted(server, version):
    headers = {"x-api-key": server.admin_key, "anthropic-beta": MEMORY} | (
        {"anthropic-version": version} if version else {}
    )
    answer = httpx2.get(f"{server.url}/v1/memory_stores", headers=headers)
    assert answer.status_code == 200, answer.text
