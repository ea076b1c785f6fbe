"""Updates: hashes, racing writers, what changes nothing."""

import pytest

from api import invalid, refused, sha
from kit.expect import together


@pytest.mark.case("LU-04")
def test_a_stale_hash_is_a_mismatch_that_names_the_current_one(shelf):
    memory = shelf.put("/releases/v.md", "one\n")
    shelf.edited(memory, content="two\n")
    body = refused(
        shelf.edit(memory, content="three\n", content_sha256=memory["content_sha256"]), 409, "content_sha256_mismatch"
    )
    assert body["details"]["code"] == "content_sha256_mismatch"
    assert body["details"]["current_content_sha256"] == sha("two\n")
    assert shelf.at("/releases/v.md").json()["content"] == "two\n" and len(shelf.history()) == 2


@pytest.mark.case("LU-09")
def test_create_never_overwrites(shelf):
    memory = shelf.put("/releases/v.md", "keep me\n")
    refused(shelf.create("/releases/v.md", "other\n"), 409, "conflict", "path")
    assert shelf.read(memory).json() == memory and len(shelf.history()) == 1


@pytest.mark.case("LU-14")
def test_restore_after_a_bad_overwrite_is_one_call(shelf):
    memory = shelf.put("/m.md", "good\n")
    shelf.edited(memory, content="garbage\n")
    restored = shelf.restore(memory["head_version_id"]).ok()
    assert (restored["memory_id"], restored["content"]) == (memory["memory_id"], "good\n")
    assert restored["content_sha256"] == sha("good\n")
    assert shelf.operations(memory) == ["create", "update", "update"]


@pytest.mark.case("LU-15")
def test_odd_hashes_mismatch_and_a_foreign_precondition_is_refused(shelf):
    memory = shelf.put("/a.md", "A\n")
    for odd in ("", sha("A\n").upper(), "abc", "0" * 64):
        refused(shelf.edit(memory, content="B\n", content_sha256=odd), 409, "content_sha256_mismatch")
    foreign = {"type": "content_sha256", "content_sha256": sha("A\n")}
    invalid(shelf.edit(memory, content="B\n", precondition=foreign), "precondition")
    assert shelf.edited(memory, content="B\n", content_sha256=None, precondition=None)["content"] == "B\n"
    assert len(shelf.history(memory)) == 2


@pytest.mark.case("LU-16")
def test_of_racing_updates_with_one_hash_exactly_one_wins(shelf):
    memory = shelf.put("/a.md", "base\n")

    def edit(i):
        return lambda: shelf.edit(memory, content=f"edit {i}\n", content_sha256=sha("base\n"))

    answers = together(*(edit(i) for i in range(10)))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 9
    (winner,) = [answer.json() for answer in answers if answer.status == 200]
    for answer in answers:
        if answer.status == 409:
            refused(answer, 409, "content_sha256_mismatch")
    assert shelf.read(memory).json() == winner and len(shelf.history(memory)) == 2


def test_what_changes_nothing_writes_nothing_even_with_a_stale_hash(shelf):
    memory = shelf.put("/a.md", "A\n", "about")
    for change in ({}, {"content": "A\n"}, {"path": "/a.md", "summary": "about"}, {"content": None}, {"colour": "red"}):
        assert shelf.edited(memory, **change, content_sha256="0" * 64) == memory
    assert len(shelf.history(memory)) == 1


def test_one_update_of_everything_is_one_version(shelf):
    memory = shelf.put("/a.md", "A\n", "old")
    changed = shelf.edited(memory, path="/b.md", summary="new", content="B\n", content_sha256=sha("A\n"))
    assert [changed[k] for k in ("memory_id", "path", "summary", "content")] == [memory["memory_id"], "/b.md", "new", "B\n"]
    assert changed["head_version_id"] != memory["head_version_id"] and changed["updated_at"] > memory["updated_at"]
    assert changed["created_at"] == memory["created_at"]
    assert shelf.operations(memory) == ["create", "update"]


@pytest.mark.parametrize(
    ("change", "operation"), [({"content": "B"}, "update"), ({"summary": "new"}, "update"), ({"path": "/b"}, "rename")]
)
def test_what_changed_names_the_operation(shelf, change, operation):
    memory = shelf.put("/a")
    changed = shelf.edited(memory, **change)
    assert {k: changed[k] for k in change} == change
    assert shelf.read(memory).json() == changed
    assert shelf.operations(memory) == ["create", operation]


@pytest.mark.case("RT-05")
def test_a_repeated_create_is_refused_and_a_repeated_restore_records_itself(shelf):
    first, again = shelf.create("/a.md", "A\n"), shelf.create("/a.md", "A\n")
    assert (first.status, again.status) == (201, 409)
    memory = first.json()
    shelf.edited(memory, content="B\n")
    assert [shelf.restore(memory["head_version_id"]).status for _ in range(2)] == [200, 200]
    assert shelf.read(memory).json()["content"] == "A\n" and len(shelf.history(memory)) == 4
