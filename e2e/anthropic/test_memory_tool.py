"""The memory tool of the Messages API with a store behind it, beside the SDK's own on a folder. spec/anthropic.md 16."""

import re

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from kit.server import E2E
from kit.tree import Tree


def without_directory_sizes(text: str) -> str:
    """A directory's size is whatever its file system says; all else must be alike."""
    head, *lines = text.split("\n")
    if not head.startswith("Here're the files"):
        return text
    blank = [re.sub(r"^\S+", "-", line) if line.endswith("/") or not n else line for n, line in enumerate(lines)]
    return "\n".join([head, *blank])


@pytest.fixture
def tool(wire, tree, tmp_path):
    """`tool(command=..., ...)` runs a command on both and returns what both say: the text and whether it is an error."""
    reference = BetaLocalFilesystemMemoryTool(str(tmp_path))

    def run(**command):
        try:
            wanted = reference.call(command), False
        except ToolError as error:
            wanted = str(error), True
        answer = wire("POST", f"{tree.route}/memory_tool", json=command).ok()
        assert set(answer) == {"content", "is_error"}
        got = answer["content"], answer["is_error"]
        assert (without_directory_sizes(got[0]), got[1]) == (without_directory_sizes(wanted[0]), wanted[1]), command
        return got

    return run


def test_a_working_day_reads_as_with_the_official_tool(tool, tree):
    for path in ("a.txt", "d/x.md", "d/deep/er/y.md", ".hidden", "日本.md"):
        tool(command="create", path=f"/memories/{path}", file_text="1\n2\n3\n4\n5\n")
    tool(command="create", path="/memories/empty", file_text="")
    assert tool(command="create", path="/memories/a.txt", file_text="x")[1]
    for path in ("/memories", "/memories/d", "/memories/a.txt", "/memories/empty", "/memories/none", "/etc/passwd"):
        tool(command="view", path=path)
    for view_range in ([1, 2], [2, -1], [0, 1], [-5, 2], [4, 99], [3, 2], [99, 100], [1, -2]):
        tool(command="view", path="/memories/a.txt", view_range=view_range)
    tool(command="str_replace", path="/memories/a.txt", old_str="3\n", new_str="three\nand\n")
    tool(command="str_replace", path="/memories/a.txt", old_str="nope", new_str="x")
    assert "lines: 1, 2, 3" in tool(command="str_replace", path="/memories/d/x.md", old_str="\n", new_str="")[0]
    for line in (0, 2, -1, 99):
        tool(command="insert", path="/memories/a.txt", insert_line=line, insert_text="new\n\n")
    tool(command="insert", path="/memories/d", insert_line=0, insert_text="x")
    tool(command="rename", old_path="/memories/d", new_path="/memories/e/f")
    tool(command="rename", old_path="/memories/none", new_path="/memories/x")
    tool(command="rename", old_path="/memories/a.txt", new_path="/memories/e")
    tool(command="rename", old_path="/memories", new_path="/memories/x")
    tool(command="delete", path="/memories/e")
    tool(command="delete", path="/memories/e")
    tool(command="delete", path="/memories")
    tool(command="view", path="/memories")
    assert tree.paths() == ["/.hidden", "/a.txt", "/empty", "/日本.md"]


def test_a_directory_moves_whole_or_not_at_all(wire, tree):
    for name in ("x", "y"):
        tree.put(f"/d/{name}", name)
    ids = {memory.id for memory in tree.list()}
    body = {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/d/below"}
    assert wire("POST", f"{tree.route}/memory_tool", json=body).ok()["is_error"] is False
    assert tree.paths() == ["/d/below/x", "/d/below/y"] and {memory.id for memory in tree.list()} == ids
    too_deep = "/memories/" + "/".join("s" * 1 for _ in range(19))
    answer = wire("POST", f"{tree.route}/memory_tool", json=body | {"old_path": "/memories/d", "new_path": too_deep}).ok()
    assert answer["is_error"] and tree.paths() == ["/d/below/x", "/d/below/y"]


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "dance", "path": "/memories/a"},
        {"command": "view"},
        {"command": "view", "path": 7},
        {"command": "view", "path": "/memories", "view_range": [1]},
        {"command": "create", "path": "/memories/a"},
        {"command": "create", "path": "/memories/a\u202e", "file_text": "x"},
        {"command": "create", "path": "/memories/a", "file_text": "a\0b"},
        {"command": "create", "path": "/memories/a", "file_text": "a" * 102_401},
        {"command": "create", "path": "/memories/taken/below", "file_text": "x"},
        {"command": "insert", "path": "/memories/taken", "insert_line": "1", "insert_text": "x"},
        {"command": "str_replace", "path": "/memories/taken", "old_str": "", "new_str": "x"},
    ],
)
def test_what_a_model_gets_wrong_it_is_told(wire, tree, command):
    tree.put("/taken", "text")
    answer = wire("POST", f"{tree.route}/memory_tool", json=command).ok()
    assert answer["is_error"] and answer["content"]
    assert tree.texts() == {"/taken": "text"}


def test_what_the_caller_may_not_do_is_refused(wire, elsewhere, tree, new_key):
    tree.put("/a.md", "text")
    route = f"{tree.route}/memory_tool"
    view = {"command": "view", "path": "/memories/a.md"}
    reader = wire.as_key(new_key(role="reader")["key"])
    assert reader("POST", route, json=view).ok()["is_error"] is False
    reader("POST", route, json={"command": "delete", "path": "/memories/a.md"}).refused(403, "permission_error")
    elsewhere("POST", route, json=view).refused(404, "not_found_error")
    elsewhere("POST", route, json={"command": "dance"}).refused(404, "not_found_error")
    wire("POST", route, body=b"[1]").refused(400, "invalid_request_error")
    assert tree.paths() == ["/a.md"]


def test_parallel_insertions_are_all_kept(wire, sdk):
    from kit.expect import together

    tree = Tree.planted(sdk)
    tree.put("/log.md", "start\n")

    def insert(n):
        body = {"command": "insert", "path": "/memories/log.md", "insert_line": 1, "insert_text": f"line {n}"}
        return lambda: wire("POST", f"{tree.route}/memory_tool", json=body).ok()

    assert all(not answer["is_error"] for answer in together(*(insert(n) for n in range(4))))
    assert sorted(tree.texts()["/log.md"].split("\n")[1:-1]) == [f"line {n}" for n in range(4)]


def test_the_class_in_the_docs_works_with_the_official_tool(sdk, tree):
    page = (E2E.parent / "docs/MEMORY_TOOL.md").read_text()
    scope: dict = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], scope)  # noqa: S102
    memory = scope["StoreMemory"](sdk, tree.id)
    assert memory.to_dict()["type"] == "memory_20250818"
    memory.call({"command": "create", "path": "/memories/a.md", "file_text": "one\n"})
    memory.call({"command": "str_replace", "path": "/memories/a.md", "old_str": "one", "new_str": "two"})
    assert "two" in memory.call({"command": "view", "path": "/memories/a.md"})
    with pytest.raises(ToolError, match="does not exist"):
        memory.call({"command": "view", "path": "/memories/none.md"})
    memory.call({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"})
    assert tree.texts() == {"/b.md": "two\n"}
    memory.call({"command": "delete", "path": "/memories/b.md"})
    assert tree.paths() == []
