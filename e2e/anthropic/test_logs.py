"""What the log may never hold, and the one line that each request leaves."""

import uuid
from functools import partial

import pytest

from kit.disk import files_holding
from kit.expect import bad_request, eventually, refusal
from kit.tree import Tree, if_text
from kit.wire import Wire

TEXT, PATH, UNKNOWN_KEY = "canary-text-5d1e", "canary-path-8b02", "rma_" + "canaryKey" * 5


@pytest.mark.parametrize("level", ["trace", "info"])
def test_no_key_text_or_path_is_logged(fresh_server, new_client, level):
    """A whole life, refusals included, at the most talkative level as at the usual one."""
    server = fresh_server(env={"STELE_LOG": level})
    wire = Wire(server.port, server.admin_key)
    made = wire("POST", "/stele/v1/api_keys", json={"name": "e2e", "role": "developer"}).ok(201)
    workspace = wire("POST", "/stele/v1/workspaces", json={"name": "e2e"}).ok(201)
    tree = Tree.planted(new_client(server, key=made["key"]))
    live_through_everything(tree)
    refused_in_every_way(wire, tree)
    wire.as_key(UNKNOWN_KEY)("GET", tree.route)
    wire.as_key(UNKNOWN_KEY)("GET", tree.route, auth="x-api-key")
    wire("DELETE", f"/stele/v1/api_keys/{made['api_key_id']}")
    server.stop()
    assert server.log
    for secret in (TEXT, PATH, "canaryKey", server.admin_key, made["key"], workspace["key"]):
        assert secret not in server.log, [line for line in server.log.splitlines() if secret in line][:3]


def live_through_everything(tree: Tree) -> None:
    memory = tree.put(f"/{PATH}/a.md", TEXT)
    tree.edit(memory.id, content=f"{TEXT} changed", path=f"/{PATH}/b.md", precondition=if_text(TEXT))
    tree.read(memory.id)
    tree.list(path_prefix=f"/{PATH}/", view="full")
    tree.list(depth=1)
    tree.redact(tree.versions(memory.id)[-1].id)
    tree.drop(memory.id)


def refused_in_every_way(wire: Wire, tree: Tree) -> None:
    taken = tree.put(f"/{PATH}.md", TEXT)
    with refusal(409, "memory_path_conflict_error"):
        tree.put(f"/{PATH}.md", TEXT)
    with refusal(409, "memory_precondition_failed_error"):
        tree.edit(taken.id, content=f"{TEXT}!", precondition=if_text("other"))
    for bad_path in (PATH, f"/{PATH}//", f"/{PATH}\n"):
        with bad_request():
            tree.put(bad_path, TEXT)
    with bad_request():
        tree.put("/big", TEXT * 10_000)
    memories = f"{tree.route}/memories"
    wire("GET", memories, query={"path_prefix": f"/{PATH}"}).refused(400, "invalid_request_error")
    wire("POST", memories, json={"path": "/a", "content": "x", TEXT: TEXT}).refused(400, "invalid_request_error")
    wire("POST", memories, json={"path": "/a", "content": {"text": TEXT}}).refused(400, "invalid_request_error")
    wire("POST", memories, body=f'{{"content": "{TEXT}'.encode()).refused(400, "invalid_request_error")


@pytest.mark.case("CL-03")
def test_the_access_log_has_one_line_for_each_request_and_names_the_route(fresh_server, new_client):
    server = fresh_server(env={"STELE_LOG": "info"})
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    tree.put("/patients/doe.md")
    read = wire("GET", f"{tree.route}/memories", query={"path_prefix": "/patients/"})
    conflict = wire("POST", f"{tree.route}/memories", json={"path": "/patients", "content": "x"})
    for answer, method in ((read, "GET"), (conflict, "POST")):
        (line,) = eventually(partial(lines_about, server, answer.request_id))
        assert method in line and str(answer.status) in line and "memory_stores/{" in line and "duration" in line
        assert "ERROR" not in line and "WARN" not in line
    assert "patients" not in server.log


def lines_about(server, request_id: str) -> list[str]:
    return [line for line in server.log.splitlines() if request_id in line]


@pytest.mark.case("CL-04")
def test_keys_are_stored_as_hashes(fresh_server):
    server = fresh_server()
    wire = Wire(server.port, server.admin_key)
    secrets = [
        wire.key,
        wire("POST", "/stele/v1/api_keys", json={"name": uuid.uuid4().hex, "role": "reader"}).ok(201)["key"],
    ]
    for secret in secrets:
        holders = files_holding(server.data_dir, secret.encode()) + files_holding(server.data_dir, secret[4:].encode())
        assert set(holders) <= ({"admin-key"} if secret == wire.key else set())
    assert not any(secret in wire("GET", "/stele/v1/api_keys").text for secret in secrets)
