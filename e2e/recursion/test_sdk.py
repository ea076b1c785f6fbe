"""A tour with the official SDK, and how it sees refusals."""

import pytest
from recursion import RecursionApiError
from recursion_sdk.models.managed_agents_memory_create_request import ManagedAgentsMemoryCreateRequest as Create
from recursion_sdk.models.managed_agents_memory_request import ManagedAgentsMemoryRequest as Update
from recursion_sdk.models.managed_agents_memory_store_request import ManagedAgentsMemoryStoreRequest as Store

from api import nowhere


def test_a_tour_of_every_operation(sdk):
    store = sdk.create_memory_store(body=Store(name="Tour", description="for the SDK"))
    here = store.memory_store_id
    assert here in [s.memory_store_id for s in sdk.list_memory_stores().memory_stores]
    assert sdk.get_memory_store(here) == store
    assert sdk.update_memory_store(here, body=Store(description="changed")).description == "changed"
    memory = sdk.create_memory(here, body=Create(path="/a/b.md", summary="about b", content="one"))
    assert sdk.get_memory(here, memory.memory_id) == sdk.get_memory_by_path(here, path="/a/b.md") == memory
    (entry,) = sdk.list_memories(here).entries
    assert (entry.type_.value, entry.path, entry.count) == ("memory_prefix", "/a/", 1)
    guarded = Update(content="two", content_sha256=memory.content_sha256)
    changed = sdk.update_memory(here, memory.memory_id, body=guarded)
    assert changed.content == "two"
    versions = sdk.list_memory_versions(here, memory_id=memory.memory_id).memory_versions
    assert [v.operation.value for v in versions] == ["update", "create"]
    assert sdk.get_memory_version(here, versions[1].memory_version_id).content == "one"
    assert sdk.restore_memory_version(here, versions[1].memory_version_id).content == "one"
    assert sdk.redact_memory_version(here, versions[0].memory_version_id) is None
    assert sdk.delete_memory(here, memory.memory_id) is None
    assert sdk.restore_memory_version(here, versions[1].memory_version_id).memory_id == memory.memory_id
    assert sdk.archive_memory_store(here) is None
    assert sdk.get_memory_store(here).archived_at
    assert sdk.delete_memory_store(here) is None
    with pytest.raises(RecursionApiError) as caught:
        sdk.get_memory_store(here)
    assert (caught.value.status_code, caught.value.parsed.code.value) == (404, "not_found")


@pytest.mark.parametrize("path", ["/a b/c&d=e?f#g.md", "/漢字/ü+%2F.md", "/100%.md"])
def test_a_path_survives_the_sdks_encoding(sdk, shelf, path):
    memory = shelf.put(path)
    assert sdk.get_memory_by_path(shelf.id, path=path).memory_id == memory["memory_id"]


def test_the_sdk_reads_a_mismatch_where_it_asked_for_codes_that_it_knows(new_sdk, shelf):
    memory = shelf.put("/a.md")
    with pytest.raises(RecursionApiError) as caught:
        stale = Update(content="y", content_sha256="0" * 64)
        new_sdk(**{"Stele-Error-Codes": "sdk"}).update_memory(shelf.id, memory["memory_id"], body=stale)
    assert (caught.value.status_code, caught.value.parsed.code.value) == (409, "conflict")
    assert caught.value.parsed.details["code"] == "content_sha256_mismatch"


def test_refusals_are_the_sdks_own_error(sdk, shelf):
    memory = shelf.put("/a.md")
    for call, status in (
        (lambda: sdk.create_memory(shelf.id, body=Create(path="/a.md", summary="s", content="x")), 409),
        (lambda: sdk.create_memory(shelf.id, body=Create(path="bad", summary="s", content="x")), 400),
        (lambda: sdk.redact_memory_version(shelf.id, memory["head_version_id"]), 409),
        (lambda: sdk.restore_memory_version(shelf.id, nowhere()), 404),
    ):
        with pytest.raises(RecursionApiError) as caught:
            call()
        assert caught.value.status_code == status and caught.value.parsed.message
