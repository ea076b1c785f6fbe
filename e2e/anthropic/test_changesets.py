"""`POST .../changesets`: several changes, all or nothing. DESIGN 7."""

import pytest

from kit.expect import together
from kit.tree import sha


@pytest.fixture
def send(wire, tree):
    """`send(change, ..., reason=...)`: the answer to a changeset on the tree."""

    def send(*changes, **rest):
        return wire("POST", f"{tree.route}/changesets", json={"changes": list(changes)} | rest)

    return send


def test_a_changeset_is_carried_out_in_order_with_one_reason(send, tree, wire):
    old = tree.put("/a.md", "one")
    answer = send(
        {"op": "update", "path": "/a.md", "content": "two", "expected_content_sha256": sha("one")},
        {"op": "update", "memory_id": old.id, "new_path": "/b.md"},
        {"op": "create", "path": "/a.md", "content": "new", "summary": "what it is"},
        {"op": "update", "path": "/a.md", "content": "new"},
        {"op": "delete", "path": "/b.md", "expected_content_sha256": sha("two")},
        reason="tidied up",
    )
    body = answer.ok()
    assert [item["path"] for item in body["data"]] == ["/a.md", "/b.md", "/a.md", "/a.md", "/b.md"]
    assert [item["memory_version_id"] is None for item in body["data"]] == [False, False, False, True, False]
    assert body["sequence"] == 5 and answer.headers["stele-sequence"] == "5"
    assert tree.texts() == {"/a.md": "new"}
    assert tree.operations(old.id) == ["created", "modified", "modified", "deleted"]
    # The reason shows as the rationale in the other dialect.
    store = wire("GET", "/managed-agents/v1/memory_stores").ok()["memory_stores"][0]["memory_store_id"]
    versions = wire("GET", f"/managed-agents/v1/memory_stores/{store}/memory_versions").ok()["memory_versions"]
    assert [v.get("rationale") for v in versions] == ["tidied up"] * 4 + [None]


@pytest.mark.parametrize(
    "last, status, kind",
    [
        ({"op": "create", "path": "/kept.md", "content": "x"}, 409, "memory_path_conflict_error"),
        ({"op": "update", "path": "/none.md", "content": "x"}, 404, "not_found_error"),
        ({"op": "delete", "memory_id": "mem_nonsense"}, 404, "not_found_error"),
        (
            {"op": "update", "path": "/kept.md", "content": "x", "expected_content_sha256": "0" * 64},
            409,
            "memory_precondition_failed_error",
        ),
        ({"op": "create", "path": "no slash", "content": "x"}, 400, "invalid_request_error"),
        ({"op": "create", "path": "/n.md", "content": "a\0b"}, 400, "invalid_request_error"),
        ({"op": "create", "path": "/n.md", "content": "a" * 102_401}, 400, "invalid_request_error"),
        ({"op": "update", "path": "/kept.md"}, 400, "invalid_request_error"),
        ({"op": "update", "path": "/kept.md", "memory_id": "mem_x", "content": "x"}, 400, "invalid_request_error"),
    ],
)
def test_a_refusal_is_that_of_the_single_change_and_leaves_nothing(send, tree, last, status, kind):
    tree.put("/kept.md", "kept")
    error = send({"op": "create", "path": "/new.md", "content": "new"}, last).refused(status, kind)
    assert error["details"]["index"] == 1
    assert tree.texts() == {"/kept.md": "kept"} and len(tree.versions()) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"changes": []},
        {"changes": {}},
        {"changes": [{"op": "move", "path": "/a"}]},
        {"changes": [{"path": "/a"}]},
        {"changes": [{"op": "create", "path": "/a", "content": "x", "mode": 1}]},
        {"changes": [{"op": "create", "path": "/a", "content": "x"}], "why": "x"},
        {"changes": [{"op": "create", "path": "/a", "content": "x"}], "reason": ""},
        {"changes": [{"op": "create", "path": "/a", "content": "x"}], "reason": "r" * 4_097},
        {"changes": [{"op": "create", "path": f"/n{n}", "content": "x"} for n in range(10_000)]},
        {"changes": [{"op": "create", "path": f"/n{n}", "content": "x" * 100_000} for n in range(84)]},
    ],
)
def test_malformed_and_oversized_changesets_are_refused(wire, tree, body):
    wire("POST", f"{tree.route}/changesets", json=body).refused(400, "invalid_request_error")
    assert tree.paths() == []


def test_a_thousand_changes_and_eight_megabytes_are_taken(send, tree):
    send(*({"op": "create", "path": f"/m/{n:04}.md", "content": "x" * 8_000} for n in range(1_000))).ok()
    assert len(tree.list()) == 1_000


def test_of_two_changesets_from_one_base_exactly_one_is_carried_out(send, tree):
    tree.put("/plan.md", "base")

    def attempt(n):
        change = {"op": "update", "path": "/plan.md", "content": f"{n}", "expected_content_sha256": sha("base")}
        return lambda: send({"op": "create", "path": f"/by/{n}.md", "content": "x"}, change)

    answers = together(*(attempt(n) for n in range(12)))
    assert sorted(answer.status for answer in answers) == [200] + [409] * 11
    assert len(tree.paths(path_prefix="/by/")) == 1


def test_each_change_needs_its_permission(send, tree, wire, new_key):
    tree.put("/a.md", "one")
    creator = wire.as_key(new_key(permissions=["read", "create"])["key"])
    create = {"op": "create", "path": "/b.md", "content": "x"}
    delete = {"op": "delete", "path": "/a.md"}
    creator("POST", f"{tree.route}/changesets", json={"changes": [create, delete]}).refused(403, "permission_error")
    reader = wire.as_key(new_key(role="reader")["key"])
    reader("POST", f"{tree.route}/changesets", json={"changes": [create]}).refused(403, "permission_error")
    assert tree.paths() == ["/a.md"]
    creator("POST", f"{tree.route}/changesets", json={"changes": [create]}).ok()


def test_foreign_stores_are_unknown(wire, elsewhere, tree):
    body = {"changes": [{"op": "create", "path": "/a.md", "content": "x"}]}
    elsewhere("POST", f"{tree.route}/changesets", json=body).refused(404, "not_found_error")
