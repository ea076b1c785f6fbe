"""Media types, selectors, echoed ids, error codes, methods."""

import json

import pytest

from api import STORES, Api, Shelf, nowhere, refused, invalid
from kit.wire import Wire


@pytest.mark.parametrize("media", ["application/json", "Application/JSON; charset=utf-8", 'application/json;charset="UTF-8"'])
def test_json_is_taken(api, media):
    body = json.dumps({"name": "typed"}).encode()
    api.ok("POST", STORES, body=body, headers=[("content-type", media)], status=201)


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1", ""])
def test_another_media_type_is_refused(api, shelf, media):
    for path in (STORES, shelf.route, f"{shelf.route}/memories", f"{shelf.route}/archive"):
        answer = api("POST", path, body=b'{"name":"x"}', headers=[("content-type", media)])
        refused(answer, 415, "unsupported_media_type")
    assert api.ok("GET", shelf.route)["status"] == "active"


@pytest.mark.parametrize("headers", [[], [("content-type", "text/plain")], [("content-type", "application/json")]], ids=str)
def test_actions_need_no_body_and_no_media_type(shelf, headers):
    memory = shelf.put("/a.md", "1")
    shelf.edited(memory, content="2")
    version = f"{shelf.route}/memory_versions/{memory['head_version_id']}"
    shelf.api.ok("POST", f"{version}/restore", headers=headers)
    shelf.api.ok("POST", f"{version}/redact", headers=headers, status=204)
    shelf.api.ok("POST", f"{shelf.route}/archive", headers=headers, status=204)


def test_actions_ignore_what_a_body_says(shelf):
    memory = shelf.put("/a.md", "1")
    shelf.api.ok("POST", f"{shelf.route}/memory_versions/{memory['head_version_id']}/restore", {"path": "/b.md"})
    assert shelf.paths() == ["/a.md"]
    refused(shelf.api("POST", f"{shelf.route}/archive", body=b"[]"), 400, "invalid_json")


def test_selectors_must_name_the_keys_own(api):
    headers = api("GET", STORES).headers
    own, tenant = headers["recursion-organization-id"], headers["recursion-tenant-id"]
    for fine in ([("x-organization-id", own)], [("x-organization-id", "default"), ("x-tenant-id", tenant)]):
        api.ok("GET", STORES, headers=fine)
    for name, wrong in (("x-organization-id", tenant), ("x-tenant-id", own), ("x-tenant-id", "default")):
        refused(api("GET", STORES, headers=[(name, wrong)]), 403, "forbidden", name)
    for name in ("x-organization-id", "x-tenant-id"):
        invalid(api("GET", STORES, headers=[(name, "")]), name)


def test_every_answer_names_organization_and_tenant(api, elsewhere):
    store = api.ok("POST", STORES, {"name": "echo"}, status=201)
    assert api("GET", "/nothing").headers["recursion-organization-id"] == store["organization_id"]
    theirs = elsewhere("GET", STORES).headers
    assert theirs["recursion-organization-id"] != store["organization_id"]
    assert theirs["recursion-tenant-id"] == api("GET", STORES, auth=None).headers["recursion-tenant-id"]


def test_the_other_credential_header_opens_this_dialect_too(api):
    api.ok("GET", STORES, auth="x-api-key")


def mismatch(shelf, *headers):
    memory = shelf.put("/a.md")
    body = {"content": "y", "content_sha256": "0" * 64}
    return shelf.api("POST", f"{shelf.route}/memories/{memory['memory_id']}", body, headers=headers)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [(None, "content_sha256_mismatch"), ("seed", "content_sha256_mismatch"), ("sdk", "conflict"), ("?", "content_sha256_mismatch")],
)
def test_a_request_chooses_the_codes_of_its_errors(shelf, wanted, code):
    body = refused(mismatch(shelf, *([("Stele-Error-Codes", wanted)] if wanted else [])), 409, code)
    assert body["details"]["code"] == "content_sha256_mismatch" and body["details"]["current_content_sha256"]


@pytest.mark.parametrize("how", ["environment", "file"])
def test_the_server_may_choose_the_codes_of_all_errors(fresh_server, tmp_path, how):
    data = tmp_path / "data"
    data.mkdir()
    if how == "file":
        (data / "stele.toml").write_text("error_codes = 'sdk'\n")
    server = fresh_server(data_dir=data, env={"STELE_ERROR_CODES": "sdk"} if how == "environment" else {})
    shelf = Shelf.made(Api(Wire(server.port, server.admin_key)))
    refused(mismatch(shelf), 409, "conflict")
    shelf = Shelf.made(shelf.api)
    refused(mismatch(shelf, ("stele-error-codes", "seed")), 409, "content_sha256_mismatch")


def test_a_method_that_a_route_does_not_take_is_named_so_with_those_it_takes(api, shelf):
    for path, allowed in ((STORES, {"GET", "POST"}), (shelf.route, {"GET", "POST", "DELETE"}), (f"{shelf.route}/archive", {"POST"})):
        answer = api("PUT", path, {})
        refused(answer, 405, "method_not_allowed")
        assert allowed <= set(answer.headers["allow"].replace(" ", "").split(","))
    refused(api("PUT", f"{STORES}/{nowhere()}/activate", {}), 404, "not_found")


def test_a_query_that_is_no_utf_8_finds_nothing(shelf):
    refused(shelf.api("GET", f"{shelf.route}/memory?path=%FF"), 404, "not_found")
    assert refused(shelf.api("GET", f"{shelf.route}/memory?%FF=1"), 400, "invalid_request", "path")
