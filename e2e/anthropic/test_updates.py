"""Safe edits: nothing is lost, torn or written twice, whoever races."""

from collections import Counter

import pytest

from kit.expect import bad_request, not_found, refusal, together
from kit.tree import if_hash, if_text, sha


def by_status(answers) -> dict[int, list]:
    return {status: [a for a in answers if a.status == status] for status in {a.status for a in answers}}


@pytest.mark.case("LU-01")
def test_twenty_parallel_creates_all_arrive(wire, tree):
    def create(i):
        return lambda: wire(
            "POST", f"{tree.route}/memories", json={"path": f"/notes/n{i}.md", "content": f"note {i}\n"}
        ).ok()

    together(*(create(i) for i in range(1, 21)))
    assert tree.texts() == {f"/notes/n{i}.md": f"note {i}\n" for i in range(1, 21)}
    assert tree.operations() == ["created"] * 20


@pytest.mark.case("LU-02")
@pytest.mark.parametrize("writers", [2, 20])
def test_of_racing_updates_from_one_base_exactly_one_wins(wire, tree, writers):
    memory = tree.put("/plan.md", "base\n")

    def edit(i):
        body = {"content": f"edit {i}\n", "precondition": if_text("base\n")}
        return lambda: wire("POST", f"{tree.route}/memories/{memory.id}", query={"view": "full"}, json=body)

    answers = by_status(together(*(edit(i) for i in range(writers))))
    assert {status: len(group) for status, group in answers.items()} == {200: 1, 409: writers - 1}
    for loser in answers[409]:
        loser.refused(409, "memory_precondition_failed_error")
    assert tree.read(memory.id).content == answers[200][0].json()["content"]
    assert tree.operations(memory.id) == ["created", "modified"]


@pytest.mark.case("LU-03")
def test_an_unconditional_overwrite_keeps_what_it_displaced(tree):
    memory = tree.put("/diary.md", "long diary\n")
    tree.edit(memory.id, content="stub\n")
    newest, oldest = tree.versions(memory.id, view="full", limit=20)
    assert (newest.content, oldest.content, oldest.operation) == ("stub\n", "long diary\n", "created")
    assert tree.edit(memory.id, content=oldest.content).content_sha256 == sha("long diary\n")
    assert len(tree.versions(memory.id)) == 3


@pytest.mark.case("LU-05")
@pytest.mark.parametrize(
    "precondition",
    [
        if_hash(sha("A\n").upper()),
        if_hash(""),
        if_hash(sha("A\n")[:-1]),
        if_hash("g" * 64),
        {"type": "etag", "content_sha256": sha("A\n")},
        {"type": "content_sha256"},
        {"content_sha256": sha("A\n")},
        {**if_text("A\n"), "more": 1},
        {},
        "text",
    ],
    ids=[
        "upper case",
        "empty",
        "63 digits",
        "no hex",
        "other type",
        "no hash",
        "no type",
        "unknown key",
        "bare",
        "string",
    ],
)
def test_a_malformed_precondition_is_a_bad_request(wire, tree, precondition):
    memory = tree.put("/a.md", "A\n")
    body = {"content": "B\n", "precondition": precondition}
    wire("POST", f"{tree.route}/memories/{memory.id}", json=body).refused(400, "invalid_request_error")
    assert tree.texts() == {"/a.md": "A\n"} and tree.operations() == ["created"]


@pytest.mark.case("LU-05")
@pytest.mark.parametrize("expected", ["abc", "", sha("A\n").upper(), sha("A\n")[:-1]])
def test_a_malformed_hash_on_delete_is_a_bad_request(wire, tree, expected):
    memory = tree.put("/a.md", "A\n")
    query = {"expected_content_sha256": expected}
    wire("DELETE", f"{tree.route}/memories/{memory.id}", query=query).refused(400, "invalid_request_error")
    assert tree.texts() == {"/a.md": "A\n"} and tree.operations() == ["created"]


@pytest.mark.case("LU-06")
def test_a_conditional_delete_spares_a_changed_memory(wire, tree):
    memory = tree.put("/a.md", "old\n")
    tree.edit(memory.id, content="new\n")
    target = f"{tree.route}/memories/{memory.id}"
    stale = wire("DELETE", target, query={"expected_content_sha256": sha("old\n")})
    stale.refused(409, "memory_precondition_failed_error")
    gone = wire("DELETE", target, query={"expected_content_sha256": sha("new\n")}).ok()
    assert gone == {"type": "memory_deleted", "id": memory.id}
    wire("DELETE", target).refused(404, "not_found_error")
    assert tree.operations(memory.id) == ["created", "modified", "deleted"]


@pytest.mark.case("LU-07")
@pytest.mark.parametrize("change", [{"content": "same\n", "path": "/a.md"}, {"content": "same\n"}, {"path": "/a.md"}])
def test_an_update_that_changes_nothing_writes_nothing(tree, change):
    before = tree.put("/a.md", "same\n", view="full")
    assert tree.edit(before.id, view="full", **change).model_dump() == before.model_dump()
    assert tree.operations(before.id) == ["created"]


@pytest.mark.case("LU-08")
def test_a_stale_precondition_is_no_conflict_when_the_wanted_state_is_there(tree):
    memory = tree.put("/a.md", "A\n")
    current = tree.edit(memory.id, content="B\n")
    repeated = tree.edit(memory.id, content="B\n", precondition=if_text("A\n"))
    assert repeated.memory_version_id == current.memory_version_id
    with refusal(409, "memory_precondition_failed_error"):
        tree.edit(memory.id, content="B\n", path="/c.md", precondition=if_text("A\n"))
    assert len(tree.versions(memory.id)) == 2 and tree.paths() == ["/a.md"]


@pytest.mark.case("LU-10")
def test_two_memories_renamed_to_one_path_have_one_winner(wire, tree):
    ids = [tree.put("/a.md", "A\n").id, tree.put("/b.md", "B\n").id]
    answers = together(
        *(lambda memory_id=i: wire("POST", f"{tree.route}/memories/{memory_id}", json={"path": "/c.md"}) for i in ids)
    )
    assert sorted(a.status for a in answers) == [200, 409]
    loser = [a.status for a in answers].index(409)
    answers[loser].refused(409, "memory_path_conflict_error")
    assert tree.read(ids[loser]).path == ["/a.md", "/b.md"][loser]
    assert len(tree.versions(ids[loser])) == 1 and len(tree.list()) == 2


@pytest.mark.case("LU-12")
def test_readers_never_see_a_mixture(wire, tree):
    memory = tree.put("/big.md", "a" * 50_000)
    target = f"{tree.route}/memories/{memory.id}"
    done, digests = [], {letter: sha(letter * 50_000) for letter in "ab"}

    def write():
        try:
            with wire.kept_alive() as call:
                for i in range(200):
                    call("POST", target, json={"content": "ba"[i % 2] * 50_000}).ok()
        finally:
            done.append(True)

    def read() -> Counter:
        seen = Counter()
        with wire.kept_alive() as call:
            while not done:
                got = call("GET", target).ok()
                letter = got["content"][0]
                assert got["content"] == letter * 50_000
                assert (got["content_size_bytes"], got["content_sha256"]) == (50_000, digests[letter])
                seen[letter] += 1
        return seen

    _, *seen = together(write, read, read, read, read)
    assert set(sum(seen, Counter())) == {"a", "b"}
    assert len(tree.versions(memory.id)) == 201


def test_equal_writers_share_one_version(wire, tree):
    memory = tree.put("/a.md", "A\n")
    body = {"content": "B\n", "precondition": if_text("A\n")}
    answers = together(*[lambda: wire("POST", f"{tree.route}/memories/{memory.id}", json=body).ok()] * 10)
    assert len({answer["memory_version_id"] for answer in answers}) == 1
    assert tree.operations(memory.id) == ["created", "modified"]


def test_one_update_of_content_and_path_is_one_version(tree):
    memory = tree.put("/a.md", "A\n")
    tree.edit(memory.id, content="B\n", path="/b.md")
    assert [(v.operation, v.path, v.content_sha256) for v in tree.versions()] == [
        ("modified", "/b.md", sha("B\n")),
        ("created", "/a.md", sha("A\n")),
    ]


def test_patch_is_an_alias_of_post(wire, tree):
    memory = tree.put("/a.md", "A\n")
    assert wire("PATCH", f"{tree.route}/memories/{memory.id}", json={"content": "B\n"}).ok()["content_sha256"] == sha(
        "B\n"
    )


@pytest.mark.parametrize("body", [{}, {"content": None, "path": None}, {"content": 1}, {"content": "x", "more": 1}])
def test_an_update_needs_something_to_change(wire, tree, body):
    memory = tree.put("/a.md", "A\n")
    wire("POST", f"{tree.route}/memories/{memory.id}", json=body).refused(400, "invalid_request_error")
    assert tree.operations() == ["created"]


def test_a_memory_of_another_store_is_unknown(tree, new_tree):
    memory, other = tree.put("/a.md"), new_tree()
    for attempt in (other.read, other.drop, lambda memory_id: other.edit(memory_id, content="y")):
        with not_found():
            attempt(memory.id)
    assert tree.operations() == ["created"] and other.versions() == []


def test_a_deleted_path_is_free_for_a_new_memory(tree):
    old = tree.put("/a.md", "old")
    tree.drop(old.id)
    new = tree.put("/a.md", "new")
    assert new.id != old.id
    assert (tree.operations(old.id), tree.operations(new.id)) == (["created", "deleted"], ["created"])


def test_create_refuses_unknown_fields(wire, tree):
    body = {"path": "/a.md", "content": "x", "summary": "s"}
    wire("POST", f"{tree.route}/memories", json=body).refused(400, "invalid_request_error")
    with bad_request():
        tree.put("/a.md", "x", view="half")
    assert tree.list() == []
