"""`stele mcp` by its lines: what may come out of it, and what must not. MCP, "stdio"."""

import socket

import pytest

from kit.mcp import HELLO, Lines, call, request
from kit.server import stele


@pytest.mark.case("MC-01")
def test_standard_output_carries_json_rpc_only(server, tree):
    lines = Lines(server, "--store", tree.id, env={"STELE_LOG": "debug"})
    every = [
        call("w", "write_memory", path="/a.md", content="x"),
        call("l", "list_memories"),
        call("s", "search_memories", query="x"),
        call("r", "read_memory", path="/a.md"),
        call("e", "edit_memory", path="/a.md", old_str="x", new_str="y"),
        call("h", "memory_history"),
        call("m", "rename_memory", path="/a.md", new_path="/b.md"),
        call("d", "delete_memory", path="/b.md"),
    ]
    try:
        for message in [HELLO, request("t", "tools/list"), *every]:
            lines.send(message)
            (answer,) = lines.receive(1)
            assert answer["id"] == message["id"] and not answer["result"].get("isError"), answer
        lines.send(b'{"jsonrpc": "2.0", broken')
        (answer,) = lines.receive(1)
        assert answer["error"]["code"] == -32700 and answer["id"] is None
        lines.send(request("p", "ping"))
        assert lines.receive(1)[0]["result"] == {}
    finally:
        status = lines.end()
    assert status == 0 and lines.lines.empty()
    assert server.admin_key.encode() not in lines.stderr


@pytest.mark.case("MC-05")
def test_many_calls_in_one_turn(server, tree, wire):
    changes = [{"op": "create", "path": f"/{n}.md", "content": f"memory number{n} x"} for n in range(50)]
    wire("POST", f"{tree.route}/changesets", json={"changes": changes}).ok()
    reads = [call(n, "read_memory", path=f"/{n}.md") for n in range(50)]
    searches = [call(f"s{n}", "search_memories", query=f"number{n}") for n in range(20)]
    lines = Lines(server, "--store", tree.id)
    try:
        lines.send(HELLO, *reads, *searches)
        answers = {answer["id"]: answer["result"] for answer in lines.receive(71)}
    finally:
        status = lines.end()
    assert status == 0 and lines.lines.empty() and len(answers) == 71
    for n in range(50):
        assert answers[n]["content"][0]["text"] == f"memory number{n} x"
    for n in range(20):
        assert answers[f"s{n}"]["structuredContent"]["memories"][0]["path"] == f"/{n}.md"


def test_calls_under_way_when_the_input_ends_are_answered(server, tree):
    lines = Lines(server, "--store", tree.id)
    lines.send(*(call(n, "write_memory", path=f"/{n}.md", content="x") for n in range(20)))
    assert lines.end() == 0
    assert {answer["id"] for answer in lines.receive(20)} == set(range(20))
    assert len(tree.paths()) == 20


def test_a_server_that_hangs_holds_up_neither_start_nor_end(server):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        lines = Lines(server, env={"STELE_URL": url})
        lines.send(HELLO, request("t", "tools/list"), call("l", "list_memories"))
        first = {answer["id"]: answer["result"] for answer in lines.receive(2)}
        assert first["hello"]["serverInfo"]["name"] == "stele" and len(first["t"]["tools"]) == 8
        assert lines.end() == 0 and lines.lines.empty()


@pytest.mark.parametrize(
    "args, says, status",
    [
        (["--store", "no-such-store"], "store no-such-store not found", 3),
        (["--agent", "agent_01" + "9" * 22], "not found", 3),
        (["--session", "sesn_01" + "9" * 22], "not found", 3),
        (["--session", "x", "--store", "y"], "cannot be used with", 2),
    ],
)
def test_a_scope_that_is_not_there_ends_the_start(server, args, says, status):
    ended = stele("mcp", *args, home=server.home, env={"STELE_URL": server.url, "STELE_API_KEY": server.admin_key})
    assert ended.returncode == status and says in ended.stderr and ended.stdout == ""
