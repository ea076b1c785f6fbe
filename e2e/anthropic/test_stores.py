"""Stores: fields, patches, archiving, deletion."""

import re

import pytest

from kit.expect import bad_request, not_found
from kit.ids import unknown_id

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def test_a_store_has_every_field_and_microseconds(wire):
    made = wire("POST", "/v1/memory_stores", json={"name": "plain"}).ok()
    assert {k: made[k] for k in ("type", "name", "description", "metadata", "archived_at")} == {
        "type": "memory_store",
        "name": "plain",
        "description": "",
        "metadata": {},
        "archived_at": None,
    }
    assert set(made) == {"id", "type", "name", "description", "metadata", "created_at", "updated_at", "archived_at"}
    assert re.fullmatch(r"memstore_[0-9A-Za-z]{20,}", made["id"])
    assert TIME.fullmatch(made["created_at"]) and made["created_at"] == made["updated_at"]
    assert wire("GET", f"/v1/memory_stores/{made['id']}").ok() == made


@pytest.mark.case("RT-07")
def test_two_stores_may_have_one_name(new_tree):
    assert new_tree(name="User Preferences").id != new_tree(name="User Preferences").id


def test_an_update_patches_what_it_names(sdk, new_tree):
    tree = new_tree(name="n", description="d", metadata={"a": "1", "b": "2"})
    changed = sdk.beta.memory_stores.update(tree.id, metadata={"b": None, "c": ""})
    assert (changed.name, changed.description, changed.metadata) == ("n", "d", {"a": "1", "c": ""})
    assert changed.updated_at > changed.created_at
    cleared = sdk.beta.memory_stores.update(tree.id, description="", name="m")
    assert (cleared.name, cleared.description, cleared.metadata) == ("m", "", {"a": "1", "c": ""})


@pytest.mark.parametrize(
    "change", [{}, {"name": "n"}, {"metadata": {"a": "1"}}, {"metadata": {"z": None}}, {"metadata": None}], ids=str
)
def test_an_update_that_changes_nothing_moves_no_time(wire, new_tree, change):
    tree = new_tree(name="n", metadata={"a": "1"})
    before = wire("GET", tree.route).ok()
    assert wire("POST", tree.route, json=change).ok() == before


def test_null_clears_a_description(wire, new_tree):
    tree = new_tree(description="d")
    assert wire("POST", tree.route, json={"description": None}).ok()["description"] == ""


@pytest.mark.parametrize(
    "change",
    [
        {"name": None},
        {"name": ""},
        {"name": 1},
        {"name": "x" * 256},
        {"description": 1},
        {"metadata": {"k": 1}},
        {"metadata": {"": "v"}},
        {"metadata": {"k" * 65: "v"}},
        {"metadata": {"k": "v" * 513}},
        {"metadata": []},
        {"metadata": {str(i): "v" for i in range(17)}},
        {"title": "x"},
    ],
    ids=lambda change: str(change)[:30],
)
def test_a_bad_field_is_refused_and_changes_nothing(wire, tree, change):
    before = wire("GET", tree.route).ok()
    wire("POST", tree.route, json=change).refused(400, "invalid_request_error")
    assert wire("GET", tree.route).ok() == before
    wire("POST", "/v1/memory_stores", json={"name": "x"} | change).refused(400, "invalid_request_error")


def test_16_pairs_at_their_bounds_fit_and_count_after_the_patch(sdk, new_tree):
    pairs = {chr(97 + i) * 64: "\u20ac" * 512 for i in range(16)}
    tree = new_tree(metadata=pairs)
    with bad_request():
        sdk.beta.memory_stores.update(tree.id, metadata={"more": "x"})
    swapped = sdk.beta.memory_stores.update(tree.id, metadata={"more": "x", "a" * 64: None})
    assert len(swapped.metadata) == 16 and swapped.metadata["more"] == "x"


def test_memory_writes_do_not_move_the_store(wire, tree):
    before = wire("GET", tree.route).ok()
    tree.drop(tree.put("/a.md").id)
    assert wire("GET", tree.route).ok() == before


def test_archiving_happens_once(tree):
    first = tree.archive()
    assert first.archived_at == first.updated_at > first.created_at
    assert tree.archive().model_dump() == first.model_dump()


def test_deletion_takes_everything_with_it(wire, tree):
    memory = tree.put("/a.md")
    assert wire("DELETE", tree.route).ok() == {"id": tree.id, "type": "memory_store_deleted"}
    for path in (
        "",
        "/memories",
        f"/memories/{memory.id}",
        "/memory_versions",
        f"/memory_versions/{memory.memory_version_id}",
    ):
        wire("GET", tree.route + path).refused(404, "not_found_error")
    wire("DELETE", tree.route).refused(404, "not_found_error")
    with not_found():
        tree.put("/b.md")


def test_an_archived_store_can_be_deleted(tree):
    tree.archive()
    assert tree.stores.delete(tree.id).id == tree.id


@pytest.mark.parametrize(
    "bad", ["memstore_", "nonsense", "memstore_01", "memstore_01" + "0" * 22, "memstore_01" + "z" * 22, "%00", "%FF"]
)
def test_a_malformed_id_is_unknown(wire, bad):
    wire("GET", f"/v1/memory_stores/{bad}").refused(404, "not_found_error")


def test_an_id_of_another_kind_is_unknown(wire, tree):
    memory = tree.put("/a.md")
    for other in (memory.id, memory.memory_version_id, unknown_id("memstore"), tree.id.replace("memstore_", "mem_")):
        wire("GET", f"/v1/memory_stores/{other}").refused(404, "not_found_error")
    for other in (tree.id, memory.memory_version_id, unknown_id("mem"), memory.id.replace("mem_", "memver_")):
        wire("GET", f"{tree.route}/memories/{other}").refused(404, "not_found_error")
