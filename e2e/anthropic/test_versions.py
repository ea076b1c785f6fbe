"""History: what writes a version, what it shows, how it is filtered."""

import pytest

from kit.ids import unknown_id
from kit.tree import sha
from kit.wire import Answer

FIELDS = {
    "id",
    "type",
    "memory_store_id",
    "memory_id",
    "operation",
    "created_at",
    "created_by",
    "path",
    "content",
    "content_sha256",
    "content_size_bytes",
    "redacted_at",
    "redacted_by",
}


def test_every_version_has_every_field(wire, tree):
    memory = tree.put("/dir/a.md", "one")
    tree.drop(memory.id)
    deleted, created = wire("GET", f"{tree.route}/memory_versions").ok()["data"]
    assert set(deleted) == set(created) == FIELDS
    assert created["created_by"].keys() == {"type", "api_key_id"} and created["created_by"]["type"] == "api_actor"
    shown = {
        "operation": "created",
        "path": "/dir/a.md",
        "content": None,
        "content_sha256": sha("one"),
        "content_size_bytes": 3,
    }
    assert shown.items() <= created.items()
    shown = {
        "operation": "deleted",
        "path": "/dir/a.md",
        "content": None,
        "content_sha256": None,
        "content_size_bytes": None,
    }
    assert shown.items() <= deleted.items()
    assert wire("GET", f"{tree.route}/memory_versions/{deleted['id']}").ok() == deleted


def test_the_head_is_the_newest_version(tree):
    memory = tree.put("/a.md", "0")
    for i in range(1, 5):
        changed = tree.edit(memory.id, content=str(i))
        assert tree.versions(memory.id)[0].id == changed.memory_version_id == tree.read(memory.id).memory_version_id


def test_content_is_shown_by_view(tree):
    version = tree.put("/a.md", "one").memory_version_id
    assert tree.version(version).content == "one"
    assert tree.version(version, view="basic").content is None
    assert tree.versions()[0].content is None
    assert tree.versions(view="full", limit=20)[0].content == "one"


def test_filters_combine(tree):
    first, second = tree.put("/a.md"), tree.put("/b.md")
    tree.edit(first.id, content="y")
    tree.drop(second.id)
    newest = tree.versions()
    me = newest[0].created_by.api_key_id
    assert [v.operation for v in tree.versions(first.id)] == ["modified", "created"]
    assert [v.memory_id for v in tree.versions(operation="created")] == [second.id, first.id]
    assert [v.memory_id for v in tree.versions(second.id, operation="deleted", api_key_id=me)] == [second.id]
    assert tree.versions(first.id, operation="deleted") == []
    assert tree.versions(created_at_gte=newest[1].created_at) == newest[:2]
    assert tree.versions(created_at_lte=newest[2].created_at) == newest[2:]


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("memory_id", "mem"), ("session_id", "sesn"), ("api_key_id", "apikey"), ("service_account_id", "svac")],
)
def test_a_well_formed_unknown_id_filters_everything_out(wire, tree, name, prefix):
    tree.put("/a.md")
    assert wire("GET", f"{tree.route}/memory_versions", query={name: unknown_id(prefix)}).ok()["data"] == []


@pytest.mark.parametrize("query", [{"operation": "restored"}, {"view": "half"}, {"created_at[gte]": "soon"}], ids=str)
def test_a_bad_filter_is_refused(wire, tree, query):
    wire("GET", f"{tree.route}/memory_versions", query=query).refused(400, "invalid_request_error")


def test_a_version_is_known_in_its_own_store_only(wire, tree, new_tree):
    version = tree.put("/a.md").memory_version_id
    for method, tail in (("GET", ""), ("POST", "/redact")):
        wire(method, f"{new_tree().route}/memory_versions/{version}{tail}").refused(404, "not_found_error")


def test_versions_are_no_child_of_a_memory(wire, tree):
    memory = tree.put("/a.md")
    wire("GET", f"{tree.route}/memories/{memory.id}/memory_versions").refused(404, "not_found_error")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_method_changes_a_version(wire, tree, method):
    target = f"{tree.route}/memory_versions/{tree.put('/a.md', 'one').memory_version_id}"
    before = wire("GET", target).ok()
    answer: Answer = wire(method, target, json={"content": "forged"})
    assert answer.status in (404, 405) and answer.json()["type"] == "error"
    assert wire("GET", target).ok() == before
