"""One store, two views: spec/recursion.md 16."""

import uuid

from api import Shelf, refused
from kit.ids import public_id, uuid_of


def test_ids_are_two_spellings_of_one(shelf, claude, there):
    memory = shelf.put("/a.md", "written here é\r\n")
    store, other = there(shelf, "/a.md")
    assert store["id"] == public_id("memstore", uuid.UUID(shelf.id)) and str(uuid_of(store["id"])) == shelf.id
    assert other["id"] == public_id("mem", uuid.UUID(memory["memory_id"]))
    assert other["memory_version_id"] == public_id("memver", uuid.UUID(memory["head_version_id"]))
    full = claude("GET", f"/{store['id']}/memories/{other['id']}").ok()
    for here, over in (("content", "content"), ("content_sha256", "content_sha256"), ("byte_size", "content_size_bytes")):
        assert memory[here] == full[over]
    assert (memory["created_at"], memory["updated_at"]) == (full["created_at"], full["updated_at"])
    claude("GET", f"/{shelf.id}").refused(404, "not_found_error")


def test_a_summary_stays_while_the_other_dialect_writes(shelf, claude, there):
    memory = shelf.put("/a.md", summary="kept")
    store, other = there(shelf, "/a.md")
    claude("POST", f"/{store['id']}/memories/{other['id']}", json={"content": "edited there"}).ok()
    assert shelf.read(memory).ok()["summary"] == "kept"
    shelf.edited(memory, summary="better")
    versions = claude("GET", f"/{store['id']}/memory_versions").ok()["data"]
    assert [v["operation"] for v in versions] == ["modified", "modified", "created"]
    assert versions[0]["content_sha256"] == versions[1]["content_sha256"]


def test_each_dialects_redaction_keeps_its_own_promise_about_the_path(shelf, claude, there):
    memory = shelf.put("/secret-name.md", "1")
    second = shelf.edited(memory, content="2")
    shelf.edited(memory, content="3")
    store, _ = there(shelf, "/secret-name.md")
    here, over = memory["head_version_id"], second["head_version_id"]
    assert shelf.redact(here).status == 204
    claude("POST", f"/{store['id']}/memory_versions/{public_id('memver', uuid.UUID(over))}/redact").ok()
    assert shelf.version(here).ok()["path"] == "/secret-name.md"
    assert shelf.version(over).ok()["path"] == ""
    for version in (here, over):
        seen = claude("GET", f"/{store['id']}/memory_versions/{public_id('memver', uuid.UUID(version))}").ok()
        assert [seen[k] for k in ("path", "content", "content_sha256", "content_size_bytes")] == [None] * 4
    claude("POST", f"/{store['id']}/memory_versions/{public_id('memver', uuid.UUID(here))}/redact").ok()
    assert shelf.version(here).ok()["path"] == ""


def test_a_memory_restored_here_is_a_modification_there(shelf, claude, there):
    memory = shelf.put("/a.md")
    store, other = there(shelf, "/a.md")
    claude("DELETE", f"/{store['id']}/memories/{other['id']}").ok()
    assert shelf.restore(memory["head_version_id"]).ok()["memory_id"] == memory["memory_id"]
    versions = claude("GET", f"/{store['id']}/memory_versions").ok()["data"]
    assert [v["operation"] for v in versions] == ["modified", "deleted", "created"]
    assert shelf.operations() == ["create", "delete", "create"]


def test_an_archived_store_loses_memories_there_and_not_here(shelf, claude, there):
    memory = shelf.put("/a.md")
    store, other = there(shelf, "/a.md")
    shelf.archive()
    assert shelf.drop(memory).status == 400
    claude("DELETE", f"/{store['id']}/memories/{other['id']}").ok()
    assert shelf.operations() == ["create", "delete"]


def test_a_body_that_was_kept_ready_never_outlives_the_head(shelf, claude, there):
    memory = shelf.put("/a.md", "1")
    store, other = there(shelf, "/a.md")
    for text in ("2", "3", "4"):
        assert shelf.read(memory).ok() == shelf.at("/a.md").ok()
        claude("POST", f"/{store['id']}/memories/{other['id']}", json={"content": text}).ok()
        assert shelf.read(memory).ok()["content"] == shelf.at("/a.md").ok()["content"] == text


def test_a_store_with_metadata_made_there_reads_here_without(api, claude):
    made = claude("POST", "", json={"name": "with metadata", "metadata": {"team": "a"}}).ok()
    shelf = Shelf(api, {"memory_store_id": str(uuid_of(made["id"])), "name": made["name"]})
    assert "metadata" not in api.ok("GET", shelf.route)
    api.ok("POST", shelf.route, {"description": "edited here"})
    assert claude("GET", f"/{made['id']}").ok()["metadata"] == {"team": "a"}
    claude("DELETE", f"/{made['id']}").ok()
    refused(api("GET", shelf.route), 404, "not_found")
