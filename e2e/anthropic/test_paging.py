"""Lists: byte order, keyset cursors, prefixes rolled up, and what a page may hold."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.expect import bad_request
from kit.wire import MANAGED, MEMORY

BYTEWISE = [
    "/A.md",
    "/Zoo.md",
    "/a.md",
    "/a/b.md",
    "/a0.md",
    "/a_z.md",
    "/ab.md",
    "/z.md",
    "/\xe9.md",
    "/\uff21.md",
    "/\U0001f600.md",
]


def fill(tree, count: int, pattern: str = "/m{:02d}.md") -> list:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda i: tree.put(pattern.format(i)), range(count)))


def pages(wire, path: str, **query):
    """Every page of a walk, as it came over the wire."""
    while True:
        page = wire("GET", path, query=query).ok()
        assert set(page) == {"data", "next_page"}
        yield page
        if page["next_page"] is None:
            return
        assert page["next_page"].startswith("page_") and page["data"]
        query["page"] = page["next_page"]


@pytest.mark.case("PG-01")
@pytest.mark.parametrize("limit", [100, 3, 1])
def test_memories_are_in_byte_order(tree, limit):
    for path in reversed(BYTEWISE):
        tree.put(path)
    assert tree.paths(limit=limit) == BYTEWISE


@pytest.mark.case("PG-02")
def test_a_cursor_outlives_its_own_item(wire, tree):
    made = fill(tree, 30)
    first = tree.memories.list(tree.id, limit=10)
    tree.drop(made[9].id)
    tree.drop(made[10].id)
    second = wire("GET", f"{tree.route}/memories", query={"limit": 10, "page": first.next_page}).ok()
    assert [m["path"] for m in second["data"]] == [f"/m{i:02d}.md" for i in range(11, 21)]


@pytest.mark.case("PG-03")
def test_versions_of_one_burst_come_newest_first_and_once(wire, tree):
    memory = tree.put("/a.md", "0")
    with wire.kept_alive() as call:
        for i in range(1, 61):
            call("POST", f"{tree.route}/memories/{memory.id}", json={"content": str(i)}).ok()
    walked = tree.versions(memory.id, limit=7, view="full")
    assert [v.content for v in walked] == [str(i) for i in reversed(range(61))]
    assert [v.created_at for v in walked] == sorted((v.created_at for v in walked), reverse=True)


@pytest.mark.case("PG-05")
def test_each_directory_comes_once_over_a_paged_walk(tree):
    fill(tree, 50, "/p/{:02d}.md")
    for path in ("/p.md", "/p0.md", "/q/x.md"):
        tree.put(path)
    rolled = [("memory", "/p.md"), ("memory_prefix", "/p/"), ("memory", "/p0.md"), ("memory_prefix", "/q/")]
    for limit in (1, 2, 100):
        assert [(item.type, item.path) for item in tree.list(depth=1, limit=limit)] == rolled
    below = tree.list(depth=1, path_prefix="/p/")
    assert [item.path for item in below] == [f"/p/{i:02d}.md" for i in range(50)]
    assert {item.type for item in below} == {"memory"}


def test_a_rolled_up_prefix_has_a_type_and_a_path_only(wire, tree):
    tree.put("/p/deep/er.md")
    assert wire("GET", f"{tree.route}/memories", query={"depth": 1}).ok()["data"] == [
        {"type": "memory_prefix", "path": "/p/"}
    ]
    below = wire("GET", f"{tree.route}/memories", query={"depth": 1, "path_prefix": "/p/"}).ok()
    assert below["data"] == [{"type": "memory_prefix", "path": "/p/deep/"}]


@pytest.mark.case("PG-06")
def test_a_full_last_page_and_an_empty_one_have_no_next(wire, tree):
    fill(tree, 20)
    full = wire("GET", f"{tree.route}/memories").ok()
    assert (len(full["data"]), full["next_page"]) == (20, None)
    assert wire("GET", f"{tree.route}/memories", query={"path_prefix": "/none/"}).ok() == {
        "data": [],
        "next_page": None,
    }


def test_the_default_page_holds_20_and_so_does_a_full_one(wire, tree):
    fill(tree, 25)
    for query in ({}, {"view": "full"}, {"view": "full", "limit": 100}):
        assert [len(page["data"]) for page in pages(wire, f"{tree.route}/memories", **query)] == [20, 5]
        versions = pages(wire, f"{tree.route}/memory_versions", **query)
        assert [len(page["data"]) for page in versions] == [20, 5]
    assert len(wire("GET", f"{tree.route}/memories", query={"limit": 100}).ok()["data"]) == 25


def test_a_walk_during_writes_shows_each_untouched_memory_once(wire, tree):
    """Others come, go and move in front of, at and behind the cursor meanwhile."""
    kept = [memory.path for memory in fill(tree, 40, "/kept{:02d}.md")]
    passing = fill(tree, 40, "/kept{:02d}a.md")
    seen, numbers = [], itertools.count()
    for page in pages(wire, f"{tree.route}/memories", limit=3):
        seen += [memory["path"] for memory in page["data"]]
        number = next(numbers)
        tree.put(f"/kept{39 - number:02d}b.md")
        if number % 2:
            tree.drop(passing[40 - number].id)
        else:
            tree.edit(passing[number].id, path=f"/a{number}.md")
    assert [path for path in seen if path in kept] == kept
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("limit", ["0", "-1", "101", "1.5", "ten", "", "99999999999999999999"])
@pytest.mark.parametrize("route", ["memories", "memory_versions", None])
def test_a_limit_out_of_bounds_is_refused(wire, tree, route, limit):
    path = f"{tree.route}/{route}" if route else "/v1/memory_stores"
    wire("GET", path, query={"limit": limit}).refused(400, "invalid_request_error")


@pytest.mark.parametrize("page", ["zzz", "page_", "page_zzz", "page_" + "1" * 200, "page_\U0001f600"])
@pytest.mark.parametrize("route", ["memories", "memory_versions", None])
def test_a_malformed_cursor_is_refused(wire, tree, route, page):
    path = f"{tree.route}/{route}" if route else "/v1/memory_stores"
    wire("GET", path, query={"page": page}).refused(400, "invalid_request_error")


def test_a_cursor_belongs_to_its_list(wire, tree, new_tree):
    other = new_tree()
    fill(tree, 2), fill(other, 2)
    lists = [
        f"{tree.route}/memories",
        f"{tree.route}/memory_versions",
        f"{other.route}/memories",
        f"{other.route}/memory_versions",
        "/v1/memory_stores",
    ]
    cursors = {path: wire("GET", path, query={"limit": 1}).ok()["next_page"] for path in lists}
    for path, (origin, cursor) in itertools.product(lists, cursors.items()):
        answer = wire("GET", path, query={"limit": 1, "page": cursor})
        if path == origin:
            answer.ok()
        else:
            answer.refused(400, "invalid_request_error")


@pytest.mark.parametrize("query", [{"depth": 2}, {"depth": -1}, {"depth": "x"}, {"view": "half"}], ids=str)
def test_other_depths_and_views_are_refused(wire, tree, query):
    wire("GET", f"{tree.route}/memories", query=query).refused(400, "invalid_request_error")


def test_unknown_and_old_query_parameters_are_ignored(wire, tree):
    fill(tree, 3)
    plain = wire("GET", f"{tree.route}/memories").ok()
    old = {"order": "desc", "order_by": "created_at", "beta": "true", "future": "1"}
    assert wire("GET", f"{tree.route}/memories", query=old).ok() == plain


def test_both_beta_values_list_alike(wire, tree):
    for path in ("/notes/a.md", "/notes-archive/b.md", "/z.md"):
        tree.put(path)
    query = {"path_prefix": "/", "depth": 1}
    assert (
        wire("GET", f"{tree.route}/memories", query=query, beta=MANAGED).ok()
        == wire("GET", f"{tree.route}/memories", query=query, beta=MEMORY).ok()
    )


def test_stores_come_newest_first(sdk, new_tree):
    made = [new_tree().id for _ in range(5)]
    listed = [store.id for store in sdk.beta.memory_stores.list(limit=2)]
    assert listed[:5] == made[::-1]
    assert len(listed) == len(set(listed))


def test_stores_are_filtered_by_time_inclusively(sdk, new_tree):
    first, second, third = (sdk.beta.memory_stores.retrieve(new_tree().id) for _ in range(3))
    between = sdk.beta.memory_stores.list(created_at_gte=first.created_at, created_at_lte=second.created_at)
    assert [store.id for store in between] == [second.id, first.id]
    after = sdk.beta.memory_stores.list(created_at_gte=third.created_at)
    assert [store.id for store in after] == [third.id]


def test_a_time_with_another_offset_is_understood_and_a_bad_one_refused(wire):
    assert wire("GET", "/v1/memory_stores", query={"created_at[gte]": "2999-01-01T00:00:00+02:00"}).ok()["data"] == []
    for time in ("yesterday", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z"):
        wire("GET", "/v1/memory_stores", query={"created_at[gte]": time}).refused(400, "invalid_request_error")


def test_archived_stores_are_listed_only_when_asked_for(sdk, new_tree):
    tree = new_tree()
    tree.archive()
    assert tree.id not in {store.id for store in sdk.beta.memory_stores.list(limit=100)}
    assert tree.id in {store.id for store in sdk.beta.memory_stores.list(limit=100, include_archived=True)}
    with bad_request():
        sdk.beta.memory_stores.list(extra_query={"include_archived": "perhaps"})
