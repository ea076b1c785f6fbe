"""Signing in at the console: a cookie that stands for a key. `cases/` CL-02, CL-04, CL-05."""

import json
from http.cookies import SimpleCookie

import pytest

from kit.expect import eventually
from kit.routes import CONSOLE_SESSION, KEYS, STORES

OWN_PAGE = {"stele-console": "1", "sec-fetch-site": "same-origin"}
RECURSION = "/managed-agents/v1/memory_stores"


class Browser:
    """A page of the console in a browser: it has a cookie and no key."""

    def __init__(self, wire):
        self.wire, self.cookie = wire, None

    def __call__(self, method, path, headers=OWN_PAGE, **fields):
        cookie = {"cookie": self.cookie} if self.cookie else {}
        return self.wire(method, path, auth=None, headers=list((headers | cookie).items()), **fields)

    def sign_in(self, key, headers=OWN_PAGE):
        answer = self("POST", CONSOLE_SESSION, headers=headers, json={"key": key})
        if answer.status == 201:
            self.set_cookie = answer.headers["set-cookie"]
            ((name, morsel),) = SimpleCookie(self.set_cookie).items()
            self.cookie = f"{name}={morsel.value}"
        return answer


@pytest.fixture
def browser(wire):
    return Browser(wire)


def test_a_key_is_exchanged_for_a_cookie_that_opens_the_same(wire, browser):
    who = browser.sign_in(wire.key).ok(201)
    assert who["role"] == "admin" and who["first_workspace"] is True
    assert wire.key not in browser.set_cookie
    attributes = {part.strip().lower() for part in browser.set_cookie.split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert browser("GET", CONSOLE_SESSION).ok() == who
    name = "made at the console"
    made = browser("POST", RECURSION, json={"name": name}).ok(201)
    assert [s for s in browser("GET", STORES).ok()["data"] if s["name"] == name]
    assert browser("DELETE", f"{RECURSION}/{made['memory_store_id']}").status == 204


@pytest.mark.parametrize("key", ["", "rma_nonsense", "sts_x"])
def test_what_is_no_key_signs_nobody_in(browser, key):
    answer = browser.sign_in(key)
    answer.refused_flat(401, "unauthorized")
    assert "set-cookie" not in answer.headers


@pytest.mark.case("CL-05")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"stele-console": "1", "sec-fetch-site": "cross-site"},
        {"stele-console": "1", "sec-fetch-site": "same-site"},
        {"stele-console": "1", "origin": "http://evil.example"},
        {"sec-fetch-site": "same-origin"},
    ],
    ids=str,
)
def test_no_other_page_can_use_the_cookie(wire, browser, headers):
    browser.sign_in(wire.key).ok(201)
    store = browser("POST", RECURSION, json={"name": "stays"}).ok(201)["memory_store_id"]
    assert browser("DELETE", f"{RECURSION}/{store}", headers=headers).status == 401
    assert browser("GET", f"{RECURSION}/{store}", headers=headers).status == 401
    browser.sign_in(wire.key, headers=headers).refused_flat(403, "forbidden")
    assert browser("DELETE", CONSOLE_SESSION, headers=headers).status == 403
    browser("GET", f"{RECURSION}/{store}").ok()


def test_what_the_cookie_holds_is_no_key(wire, browser):
    browser.sign_in(wire.key).ok(201)
    secret = browser.cookie.partition("=")[2]
    assert secret.startswith("scs_")
    assert wire.as_key(secret)("GET", STORES).status == 401


def test_signing_out_ends_the_session_itself(wire, browser):
    browser.sign_in(wire.key).ok(201)
    answer = browser("DELETE", CONSOLE_SESSION)
    assert answer.status == 204 and "Max-Age=0" in answer.headers["set-cookie"]
    assert eventually(lambda: browser("GET", CONSOLE_SESSION).status == 401, 5)


def test_revoking_the_key_signs_out(wire, browser, new_key):
    key = new_key(role="reader")
    browser.sign_in(key["key"]).ok(201)
    browser("POST", RECURSION, json={"name": "no"}).refused_flat(403, "forbidden")
    assert wire("DELETE", f"{KEYS}/{key['api_key_id']}").status == 204
    assert eventually(lambda: browser("GET", CONSOLE_SESSION).status == 401, 5)


def test_what_a_person_writes_at_the_console_is_that_persons(wire, browser, new_key):
    key = new_key(role="developer", user="Ada Lovelace")
    assert key["user"] == "Ada Lovelace"
    who = browser.sign_in(key["key"]).ok(201)
    store = browser("POST", RECURSION, json={"name": "signed"}).ok(201)["memory_store_id"]
    memory = {"path": "/a.md", "summary": "s", "content": "x"}
    browser("POST", f"{RECURSION}/{store}/memories", json=memory).ok(201)
    api = wire.as_key(key["key"])
    api("POST", f"{RECURSION}/{store}/memories", json=memory | {"path": "/b.md"}).ok(201)
    versions = api("GET", f"{RECURSION}/{store}/memory_versions").ok()["memory_versions"]
    kinds = {v["path"]: (v["author_kind"], v["author_principal"]) for v in versions}
    assert kinds == {"/a.md": ("admin", who["user"]["user_id"]), "/b.md": ("api", key["api_key_id"])}
    assert who["user"] in wire("GET", "/stele/v1/users").ok()["users"]


def test_the_table_of_permissions_says_what_a_role_may_do(wire):
    table = wire("GET", "/stele/v1/permissions").ok()
    needs = {(row["resource"], row["action"]): row["needs"] for row in table["actions"]}
    assert needs["version", "redact"] == "delete" and needs["api_key", "create"] == "admin"
    assert {role["role"]: role["permissions"] for role in table["roles"]}["reader"] == ["read"]


def test_secrets_of_the_console_are_not_in_the_data_directory(fresh_server, wire):
    server = fresh_server()
    own = Browser(type(wire)(server.port, server.admin_key))
    own.sign_in(server.admin_key).ok(201)
    secret = own.cookie.partition("=")[2]
    files = [file for file in server.data_dir.rglob("*") if file.is_file()]
    assert files and not [file for file in files if secret.encode() in file.read_bytes()]


@pytest.mark.case("CL-02")
@pytest.mark.parametrize("path", ["/", "/stores/x", "/no/such/place"])
def test_every_address_of_a_person_is_a_page_that_nothing_frames_or_scripts(wire, path):
    answer = wire("GET", path, auth=None, headers=[("accept", "text/html")])
    assert answer.status == 200 and answer.text.startswith("<!doctype html>")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_programs_are_still_told_that_there_is_no_such_route(wire):
    answer = wire("GET", "/no/such/place", headers=[("accept", "application/json")])
    assert answer.status == 404 and json.loads(answer.text)["code"] == "not_found"
