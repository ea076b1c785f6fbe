"""Names: what a path may be, what occupies it, and how a prefix matches."""

import pytest

from kit.expect import bad_request, refusal, together

REFUSED = [
    "",
    "a.md",
    "/",
    "//",
    "/a//b",
    "/a/",
    "/./a",
    "/a/.",
    "/../a",
    "/a/../b",
    "/..",
    "/a\tb",
    "/a\nb",
    "/a\x7fb",
    "/a\x85b",
    "/a\u200bb",
    "/a\u200eb",
    "/a\ufeffb",
    "/a\u2028b",
    "/a\u2029b",
    "/a\xadb",
    "/cafe\u0301.md",
    "/\u212bngstrom",
    "C:\\a.md",
    "\\a.md",
]
LEGAL = [
    "/ ",
    "/a b.md",
    "/100%",
    "/_",
    "/*?",
    "/a\\b",
    "/.hidden",
    "/...",
    "/日本語.md",
    "/caf\xe9.md",
    "/.anthropic-memory-store",
]


@pytest.mark.case("PA-01")
@pytest.mark.parametrize("path", REFUSED, ids=ascii)
def test_a_bad_path_is_refused_on_create_and_on_rename(wire, tree, path):
    kept = tree.put("/ok.md")
    create = wire("POST", f"{tree.route}/memories", json={"path": path, "content": "x"})
    rename = wire("POST", f"{tree.route}/memories/{kept.id}", json={"path": path})
    for answer in (create, rename):
        assert "path" in answer.refused(400, "invalid_request_error")["message"]
    assert tree.paths() == ["/ok.md"] and tree.operations() == ["created"]


@pytest.mark.parametrize("path", LEGAL, ids=ascii)
def test_anything_else_is_a_legal_path(tree, path):
    assert tree.read(tree.put(path).id).path == path
    assert tree.paths() == [path]


@pytest.mark.case("PA-02")
@pytest.mark.parametrize("path", ["/" + "a" * 1023, "/" + "\u20ac" * 341, "/d" * 20], ids=["ascii", "euro", "segments"])
def test_1024_bytes_and_20_segments_fit(tree, path):
    assert tree.put(path).path == path


@pytest.mark.case("PA-02")
@pytest.mark.parametrize("path", ["/" + "a" * 1024, "/" + "\u20ac" * 342, "/e" * 21], ids=["ascii", "euro", "segments"])
def test_one_byte_or_segment_more_is_refused(tree, path):
    with bad_request():
        tree.put(path)
    assert tree.list() == []


@pytest.mark.case("PA-03")
def test_case_makes_a_difference(tree):
    tree.put("/Notes/Plan.md", "1")
    tree.put("/notes/plan.md", "2")
    assert tree.paths(path_prefix="/notes/") == ["/notes/plan.md"]
    assert tree.texts() == {"/Notes/Plan.md": "1", "/notes/plan.md": "2"}


@pytest.mark.parametrize(("there", "wanted"), [("/a", "/a"), ("/a", "/a/b/c"), ("/a/b/c", "/a"), ("/a/b/c", "/a/b")])
def test_a_path_is_occupied_at_above_and_below_a_memory(tree, there, wanted):
    blocker, other = tree.put(there), tree.put("/other")
    for attempt in (lambda: tree.put(wanted), lambda: tree.edit(other.id, path=wanted)):
        with refusal(409, "memory_path_conflict_error") as caught:
            attempt()
        error = caught.value.body["error"]
        assert error["conflicting_memory_id"] == blocker.id
        assert error["conflicting_path"] == there
    assert tree.paths() == sorted([there, "/other"]) and len(tree.versions()) == 2


def test_the_smallest_blocking_path_is_named(tree):
    tree.put("/a/y")
    smallest = tree.put("/a/x")
    with refusal(409, "memory_path_conflict_error") as caught:
        tree.put("/a")
    assert caught.value.body["error"]["conflicting_memory_id"] == smallest.id


def test_paths_that_only_look_alike_do_not_block(tree):
    wanted = ["/a_b", "/acb/x", "/a", "/ab", "/a.md", "/a b/c", "/%", "/x/y"]
    for path in wanted:
        tree.put(path)
    assert sorted(tree.paths()) == sorted(wanted)


@pytest.mark.case("PA-05")
def test_a_memory_may_move_below_itself(tree):
    memory = tree.put("/a", "1")
    moved = tree.edit(memory.id, path="/a/index.md")
    assert (moved.id, moved.path) == (memory.id, "/a/index.md")
    back = tree.edit(memory.id, path="/a")
    assert (back.id, back.path) == (memory.id, "/a")


@pytest.mark.case("PA-05")
def test_a_file_and_a_directory_of_one_name_never_both_win(wire, tree):
    def create(path):
        return wire("POST", f"{tree.route}/memories", json={"path": path, "content": "x"})

    for _ in range(50):
        answers = together(lambda: create("/q"), lambda: create("/q/r"))
        assert sorted(answer.status for answer in answers) == [200, 409]
        (winner,) = [answer.json() for answer in answers if answer.status == 200]
        tree.drop(winner["id"])


@pytest.mark.case("PA-06")
def test_a_prefix_is_literal_and_whole(tree):
    for number, directory in enumerate(["/a_b", "/axb", "/a%b", "/a", "/ab", "/A"], start=1):
        tree.put(f"{directory}/{number}", str(number))
    assert tree.paths(path_prefix="/a_b/", depth=0) == ["/a_b/1"]
    assert tree.paths(path_prefix="/a%b/", depth=0) == ["/a%b/3"]
    assert tree.paths(path_prefix="/a/", depth=0) == ["/a/4"]
    assert tree.paths(path_prefix="/zzz/", depth=0) == []
    assert tree.paths(path_prefix="/") == tree.paths()


@pytest.mark.case("PA-06")
@pytest.mark.parametrize("prefix", ["/a", "a/", "", "/a\0/", "/a\n/"], ids=ascii)
def test_a_prefix_that_is_no_directory_is_refused(tree, prefix):
    with bad_request():
        tree.list(path_prefix=prefix)


@pytest.mark.case("PA-07")
def test_odd_slashes_in_the_url_never_redirect(wire, tree):
    tree.put("/a.md")
    for path in (f"{tree.route}/memories/", "//v1//memory_stores", "/v1/memory_stores/"):
        assert wire("GET", path).status in (200, 404), path
    wire("GET", f"{tree.route}/memories/..%2F..%2Fsessions").refused(404, "not_found_error")
