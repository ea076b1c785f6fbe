"""`stele key` and `stele workspace` against a running server."""

import json

import pytest

from kit.expect import eventually
from kit.routes import STORES
from kit.server import stele


@pytest.fixture
def run(server, tmp_path):
    """A command as another shell of the operator would start it; `--json` makes its output readable here."""

    def command(*args, key=server.admin_key, check=True, **env):
        env = {"STELE_URL": server.url, "STELE_API_KEY": key} | env
        done = stele(*args, home=tmp_path, env={name: value for name, value in env.items() if value})
        assert not check or done.returncode == 0, done.stderr
        return done

    return command


def test_a_key_is_made_listed_and_revoked(run, wire):
    made = json.loads(run("key", "create", "from the shell", "--role", "contributor", "--json").stdout)
    caller = wire.as_key(made["key"])
    caller("POST", STORES, json={"name": "by cli"}).ok()
    listing = run("key", "list", "--json").stdout
    assert made["api_key_id"] in listing and made["key"] not in listing
    run("key", "revoke", "--yes", made["api_key_id"])
    assert eventually(lambda: caller("GET", STORES).status == 401, 5)


def test_the_plain_output_shows_the_new_key_too(run, wire):
    words = run("key", "create", "plain", "--role", "reader").stdout.split()
    (key,) = [word for word in words if word.startswith("rma_")]
    wire.as_key(key)("GET", STORES).ok()
    assert "plain" in run("key", "list").stdout


def test_a_key_may_have_a_set_of_its_own_and_an_end(run):
    flags = ["--permissions", "read,update", "--expires-at", "2999-01-01T00:00:00Z", "--json"]
    made = json.loads(run("key", "create", "narrow", *flags).stdout)
    assert "role" not in made and set(made["permissions"]) == {"read", "update"}
    assert made["expires_at"].startswith("2999-01-01T00:00:00")


def test_a_workspace_is_made_and_listed(run, wire):
    made = json.loads(run("workspace", "create", "cli tenant", "--json").stdout)
    assert wire.as_key(made["key"])("GET", STORES).ok()["data"] == []
    assert "cli tenant" in run("workspace", "list").stdout


def test_a_workspace_may_have_a_cap_of_its_own(run, wire):
    made = json.loads(run("workspace", "create", "capped", "--max-memories-per-store", "1", "--json").stdout)
    assert made["max_memories_per_store"] == 1
    caller = wire.as_key(made["key"])
    store = caller("POST", STORES, json={"name": "small"}).ok()["id"]
    memories = f"{STORES}/{store}/memories"
    caller("POST", memories, json={"path": "/a", "content": "x"}).ok()
    assert caller("POST", memories, json={"path": "/b", "content": "x"}).status >= 400


def test_a_key_is_revoked_by_either_spelling_of_its_id(run):
    run("key", "create", "spelled")
    keys = json.loads(run("key", "list", "--json").stdout)["api_keys"]
    (listed,) = [key for key in keys if key["name"] == "spelled"]
    assert listed["id"].startswith("apikey_01") and listed["api_key_id"] in run("key", "list").stdout
    run("key", "revoke", "--yes", listed["id"])
    assert listed["api_key_id"] not in run("key", "list").stdout


def test_the_admin_key_is_found_on_the_same_machine(run, server):
    assert "api_keys" in run("key", "list", "--json", key="", STELE_DATA_DIR=str(server.data_dir)).stdout


def test_a_refusal_is_one_clear_line_and_a_failure(run, new_key):
    reader = new_key(role="reader")["key"]
    refused = run("key", "list", key=reader, check=False)
    assert refused.returncode != 0 and refused.stderr.strip() and "panicked" not in refused.stderr
    assert reader not in refused.stderr + refused.stdout


def test_an_unreachable_server_is_named(run):
    unreachable = run("key", "list", check=False, STELE_URL="http://127.0.0.1:9")
    assert unreachable.returncode != 0 and "127.0.0.1:9" in unreachable.stderr
    assert "panicked" not in unreachable.stderr
