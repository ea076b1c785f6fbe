"""Names: what a path may be, what occupies it, how a prefix matches, and one level of a store."""

import pytest

from api import invalid, refused

REFUSED = [
    "", "a.md", "/", "//", "/a//b", "/a/", "/./a", "/a/.", "/../a", "/a/../b", "/..", "/a\tb", "/a\nb", "/a\x7fb",
    "/a\x85b", "/a\u200bb", "/a\u200eb", "/a\ufeffb", "/a\u2028b", "/a\u2029b", "/a\xadb", "/cafe\u0301.md",
    "/\u212bngstrom", "C:\\a.md", "\\a.md", "/" + "a" * 1024, "/e" * 21,
]  # fmt: skip


@pytest.mark.case("PA-01")
@pytest.mark.parametrize("path", REFUSED, ids=ascii)
def test_a_bad_path_is_refused_on_create_and_on_rename(shelf, path):
    kept = shelf.put("/ok.md")
    for answer in (shelf.create(path), shelf.edit(kept, path=path)):
        assert "path" in invalid(answer, "path")["message"]
    assert shelf.at(path).status == (400 if path == "" else 404)
    assert shelf.paths() == ["/ok.md"] and shelf.operations() == ["create"]


@pytest.mark.case("PA-03")
def test_case_makes_a_difference(shelf):
    shelf.put("/Notes/Plan.md", "1")
    shelf.put("/notes/plan.md", "2")
    assert shelf.paths(path_prefix="/notes/") == ["/notes/plan.md"]
    refused(shelf.at("/NOTES/Plan.md"), 404, "not_found")
    assert shelf.paths() == ["/Notes/Plan.md", "/notes/plan.md"]


@pytest.mark.case("PA-04")
@pytest.mark.parametrize(("there", "wanted"), [("/a", "/a"), ("/a/b.md", "/a"), ("/x", "/x/y"), ("/a/b/c", "/a/b")])
def test_a_path_is_occupied_at_above_and_below_a_memory(shelf, there, wanted):
    shelf.put(there)
    other = shelf.put("/other")
    for answer in (shelf.create(wanted), shelf.edit(other, path=wanted)):
        refused(answer, 409, "conflict", "path")
    assert shelf.paths() == sorted([there, "/other"]) and len(shelf.history()) == 2


def test_a_memory_may_move_below_itself(shelf):
    memory = shelf.put("/a")
    assert shelf.edited(memory, path="/a/index.md")["memory_id"] == memory["memory_id"]


@pytest.mark.case("PA-06")
def test_a_prefix_is_literal_and_whole(shelf):
    for path in ("/a_b/1", "/axb/2", "/a%b/3", "/a/4", "/ab/5", "/A/6"):
        shelf.put(path)
    for prefix, paths in {"/a_b/": ["/a_b/1"], "/a%b/": ["/a%b/3"], "/a/": ["/a/4"], "/zzz/": []}.items():
        assert shelf.paths(path_prefix=prefix) == paths
    for prefix in ("/a", "a/", "", "/a//", "/../", "/a/4"):
        invalid(shelf.api("GET", f"{shelf.route}/memories", query={"path_prefix": prefix}), "path_prefix")
    for depth in ("2", "-1", "all", ""):
        invalid(shelf.api("GET", f"{shelf.route}/memories", query={"depth": depth}), "depth")


@pytest.mark.case("PA-07")
def test_odd_slashes_in_the_url_never_redirect(shelf, wire):
    base = f"/managed-agents/v1{shelf.route}"
    for path in ("/managed-agents/v1/memory_stores/", "//managed-agents//v1/memory_stores", f"{base}/memories/"):
        assert wire("GET", path, beta=None).status in (200, 404)
    assert wire("GET", f"{base}/memories/..%2F..%2Fsessions", beta=None).status in (400, 404)


def test_a_level_shows_summaries_sizes_and_counts_in_byte_order(shelf):
    for path in ("/b.md", "/a/x.md", "/a/y/z.md", "/a/y/w.md", "/a0.md", "/B.md", "/\xe9.md", "/\U0001f600.md", "/\uff21.md"):
        shelf.put(path, content="four", summary=f"about {path}")

    def memory(path):
        return {"type": "memory", "path": path, "summary": f"about {path}", "byte_size": 4}

    level = [
        memory("/B.md"),
        {"type": "memory_prefix", "path": "/a/", "count": 3},
        *map(memory, ["/a0.md", "/b.md", "/\xe9.md", "/\uff21.md", "/\U0001f600.md"]),
    ]
    assert shelf.browse() == shelf.browse(depth=1) == shelf.browse(path_prefix="/") == level
    below = {"type": "memory_prefix", "path": "/a/y/", "count": 2}
    assert shelf.browse(path_prefix="/a/") == [memory("/a/x.md"), below]
    assert shelf.browse(path_prefix="/a/", depth=0) == [*map(memory, ["/a/x.md", "/a/y/w.md", "/a/y/z.md"])]


def test_a_level_of_more_than_a_thousand_entries_comes_whole(shelf, wire):
    """The server reads it in steps; nobody may see where they join."""
    with wire.kept_alive() as call:
        inside = type(shelf)(type(shelf.api)(call), {"memory_store_id": shelf.id, "name": shelf.name})
        for n in range(1, 1203):
            inside.put(f"/d{n:04}/x.md" if n % 2 else f"/d{n:04}")
    whole = shelf.browse()
    assert [entry["path"] for entry in whole] == [f"/d{n:04}/" if n % 2 else f"/d{n:04}" for n in range(1, 1203)]
    assert all(entry["count"] == 1 for entry in whole if entry["type"] == "memory_prefix")
    assert len(shelf.paths()) == 1202
