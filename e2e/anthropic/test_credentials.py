"""Who may call: both credential headers, and what is no credential."""

import uuid

import anthropic
import pytest

from kit.expect import not_found, refusal
from kit.ids import public_id, unknown_id

STORES = "/v1/memory_stores"
UNKNOWN = "rma_" + "A" * 43


@pytest.mark.parametrize("auth", ["bearer", "x-api-key", "X-Api-Key"])
def test_one_key_works_in_both_headers(wire, auth):
    wire("GET", STORES, auth=auth).ok()


def test_the_scheme_is_case_insensitive(wire):
    wire("GET", STORES, auth=None, headers=[("authorization", f"bearer {wire.key}")]).ok()


def test_both_headers_are_one_author(wire, tree):
    for auth, path in (("bearer", "/a"), ("x-api-key", "/b")):
        wire("POST", f"{tree.route}/memories", auth=auth, json={"path": path, "content": "x"}).ok()
    assert len({version.created_by.api_key_id for version in tree.versions()}) == 1


def test_x_api_key_decides_where_both_are_sent(wire):
    wire("GET", STORES, auth="x-api-key", headers=[("authorization", f"Bearer {UNKNOWN}")]).ok()
    answer = wire("GET", STORES, auth="bearer", headers=[("x-api-key", UNKNOWN)])
    answer.refused(401, "authentication_error")


@pytest.mark.parametrize(
    "header",
    [
        None,
        ("authorization", ""),
        ("authorization", "Bearer"),
        ("authorization", "Bearer "),
        ("authorization", UNKNOWN),
        ("authorization", f"Bearer {UNKNOWN}"),
        ("authorization", "Basic eDp5"),
        ("authorization", b"Bearer \xff\xfe"),
        ("x-api-key", ""),
        ("x-api-key", UNKNOWN),
        ("x-api-key", "x" * 4096),
        ("x-api-key", b"\xff"),
    ],
    ids=lambda header: "none" if header is None else f"{header[0]}: {str(header[1])[:20]}",
)
def test_anything_else_is_no_credential(wire, header):
    answer = wire("GET", STORES, auth=None, headers=[header] if header else [])
    answer.refused(401, "authentication_error")


def test_the_scheme_alone_does_not_make_the_key(wire):
    wire("GET", STORES, auth=None, headers=[("authorization", f"Basic {wire.key}")]).refused(
        401, "authentication_error"
    )


def test_a_key_must_match_whole(wire):
    for key in (wire.key[:-1], wire.key + "A", wire.key.upper(), wire.key.swapcase()):
        wire.as_key(key)("GET", STORES).refused(401, "authentication_error")


def test_the_sdk_raises_authentication_error(server, new_client):
    with refusal(401, "authentication_error") as caught:
        new_client(server, key=UNKNOWN).beta.memory_stores.list()
    assert isinstance(caught.value, anthropic.AuthenticationError)


def test_an_api_key_given_as_auth_token_works(server, new_client, tree):
    client = new_client(server, api_key=None, auth_token=server.admin_key)
    assert client.beta.memory_stores.retrieve(tree.id).id == tree.id


def test_the_workspace_header_must_name_the_keys_own(wire, elsewhere):
    """The oldest workspace is that of the first key; Anthropic's spelling of its id is what an SDK sends."""
    workspaces = sorted(wire("GET", "/stele/v1/workspaces").ok()["workspaces"], key=lambda w: w["created_at"])
    own, other = (public_id("wrkspc", uuid.UUID(w["workspace_id"])) for w in workspaces[:2])
    wire("GET", STORES, headers=[("anthropic-workspace-id", own)]).ok()
    elsewhere("GET", STORES, headers=[("anthropic-workspace-id", other)]).ok()
    for foreign in (other, unknown_id("wrkspc")):
        wire("GET", STORES, headers=[("anthropic-workspace-id", foreign)]).refused(403, "permission_error")


def test_a_store_of_another_workspace_is_unknown(server, new_client, elsewhere, tree):
    foreign = new_client(server, key=elsewhere.key)
    with not_found():
        foreign.beta.memory_stores.retrieve(tree.id)
    assert tree.id not in {store.id for store in foreign.beta.memory_stores.list(limit=100)}
