"""Pages of the history: limits, cursors, and walks that are not disturbed."""

import pytest

from api import Shelf, invalid


@pytest.fixture(scope="module")
def long(api):
    """A store, and a memory of 30 versions in it."""
    shelf = Shelf.made(api)
    memory = shelf.put("/a.md", "0")
    for n in range(1, 30):
        shelf.edited(memory, content=str(n))
    return shelf, memory


@pytest.mark.case("PG-03")
def test_versions_of_one_burst_come_newest_first_and_once(shelf):
    memory = shelf.put("/a.md", "0")
    for n in range(1, 61):
        shelf.edited(memory, content=str(n))
    walked = shelf.history(memory, limit=7)
    texts = [shelf.version(version["memory_version_id"]).ok()["content"] for version in walked]
    assert texts == [str(n) for n in range(60, -1, -1)]
    assert len(shelf.page().ok()["memory_versions"]) == 50


@pytest.mark.case("PG-04")
def test_a_limit_is_never_clamped(long):
    shelf, _ = long
    for limit in ("0", "101", "-1", "1.5", "ten", "", "99999999999999999999"):
        invalid(shelf.page(limit=limit), "limit")
    for limit in (1, 100):
        assert len(shelf.page(limit=limit).ok()["memory_versions"]) == min(limit, 30)


@pytest.mark.case("PG-04")
def test_a_cursor_belongs_to_its_list(long, api):
    shelf, memory = long
    mine = {"memory_id": memory["memory_id"]}
    first = shelf.page(limit=10, **mine).ok()
    assert len(first["memory_versions"]) == 10
    cursor = first["next_cursor"]
    other = Shelf.made(api)
    for answer in (
        *(shelf.page(cursor=bad) for bad in ("zzz", "", "AAAA", "1", cursor[:-2], cursor + "x")),
        shelf.page(limit=10, cursor=cursor),
        other.page(cursor=cursor, **mine),
    ):
        invalid(answer, "cursor")
    rest = shelf.page(limit=25, cursor=cursor, **mine).ok()
    assert len(rest["memory_versions"]) == 20 and "next_cursor" not in rest


def test_a_walk_is_not_disturbed_by_new_writes(shelf):
    for n in range(6):
        shelf.put(f"/{n}.md")
    first = shelf.page(limit=3).ok()
    shelf.put("/late.md")
    second = shelf.page(limit=3, cursor=first["next_cursor"]).ok()
    paths = [version["path"] for version in first["memory_versions"] + second["memory_versions"]]
    assert paths == [f"/{n}.md" for n in range(5, -1, -1)] and "next_cursor" not in second


def test_an_unknown_memory_has_an_empty_history(shelf):
    from api import nowhere

    shelf.put("/a.md")
    assert shelf.page(memory_id=nowhere()).ok() == {"memory_versions": []}
    for bad in ("nope", "", nowhere().upper()):
        invalid(shelf.page(memory_id=bad), "memory_id")
