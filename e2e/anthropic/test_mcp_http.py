"""`/mcp` by plain HTTP: who gets in, and what is answered to what. MCP, "Streamable HTTP"."""

import pytest

from kit.mcp import HELLO, call
from kit.tree import Tree
from kit.wire import Wire, dumps


def post(wire, message, query: dict | None = None, **headers):
    fields = {"accept": "application/json, text/event-stream"} | headers
    return wire("POST", "/mcp", query=query, json=message, headers=fields.items())


def test_the_route_answers_by_itself_whatever_came_before(server, wire, tree):
    """Stateless: no session is made, so any process may answer the next request."""
    hello = post(wire, HELLO).ok()
    assert hello["result"]["serverInfo"]["name"] == "stele"
    assert post(wire, HELLO).headers.get("mcp-session-id") is None
    assert post(wire, {"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
    assert post(wire, call(1, "list_memories"), {"store": tree.id}).ok()["result"]["isError"] is False
    assert post(wire, call(1, "list_memories"), {"store": tree.id}, accept="*/*").status == 200
    for method in ("GET", "DELETE"):
        assert wire(method, "/mcp").status == 405


@pytest.mark.case("AC-01")
def test_the_route_opens_with_a_valid_credential_only(server, wire, tree, house):
    for bad in ("rma_" + "x" * 43, "nonsense"):
        refused = post(wire.as_key(bad), HELLO)
        refused.refused_flat(401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
    wire("POST", "/mcp", json=HELLO, auth=None).refused_flat(401, "unauthorized")
    post(wire.as_key(house.key), HELLO).refused_flat(400, "invalid_request")
    for query in ({"stor": tree.id}, {"session": "a", "store": "b"}):
        post(wire, HELLO, query).refused_flat(400, "invalid_request")
    for query in ({"store": "none"}, {"session": "sesn_01" + "9" * 22}, {"agent": "none"}):
        post(wire, HELLO, query).refused_flat(404, "not_found")


def test_foreign_web_pages_are_kept_out(server, wire, fresh_server):
    assert post(wire, HELLO, origin="http://evil.example").status == 403
    assert post(wire, HELLO, origin="null").status == 403
    assert post(wire, HELLO, origin="http://localhost:3000").status == 200
    own = fresh_server(env={"STELE_MCP_ORIGINS": "https://app.example"})
    theirs = Wire(own.port, own.admin_key)
    assert post(theirs, HELLO, origin="https://app.example").status == 200
    assert post(theirs, HELLO, origin="http://app.example").status == 403


def test_what_is_no_message_is_answered_as_json_rpc_says(server, wire):
    for body, code in [(b"{broken", -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602)]:
        answer = wire("POST", "/mcp", body=body)
        assert answer.status == 400 and answer.json()["error"]["code"] == code, answer.text
    big = dumps(call(1, "write_memory", path="/a", content="x" * 5_000_000))
    assert wire("POST", "/mcp", body=big).status == 413
    assert wire("POST", "/mcp", body=b"x=1", headers=[("content-type", "text/plain")]).status == 415


def test_the_log_holds_no_memory_and_no_key(fresh_server, new_client):
    server = fresh_server(env={"STELE_LOG": "trace"})
    tree = Tree.planted(new_client(server))
    wire = Wire(server.port, server.admin_key)
    post(wire, call(1, "write_memory", path="/secret-path.md", content="secret content", summary="secret summary")).ok()
    post(wire, call(2, "search_memories", query="secret query")).ok()
    post(wire, call(3, "secret_tool", secret="secret")).ok()
    post(wire, call(4, "read_memory", path=["secret"])).ok()
    wire("POST", "/mcp", body=b'{"secret')
    assert tree.paths() == ["/secret-path.md"]
    server.stop()
    assert "secret" not in server.log and server.admin_key not in server.log and "/mcp" in server.log


@pytest.mark.case("AC-03")
def test_reading_by_tools_leaves_no_trace(wire, tree):
    memory = tree.put("/a.md")
    tree.edit(memory.id, content="z")
    places = [tree.route, f"{tree.route}/memories", f"{tree.route}/memory_versions"]
    query = {"view": "full"}
    before = [wire("GET", place, query=query).body for place in places]
    for _ in range(20):
        for name, arguments in {
            "list_memories": {},
            "search_memories": {"query": "z"},
            "read_memory": {"path": "/a.md"},
            "memory_history": {"path": "/a.md"},
        }.items():
            assert not post(wire, call(1, name, **arguments), {"store": tree.id}).ok()["result"]["isError"]
    assert [wire("GET", place, query=query).body for place in places] == before
