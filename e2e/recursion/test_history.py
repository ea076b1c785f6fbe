"""History: what versions show, restore, redaction, retention."""

import pytest

from api import Api, Shelf, invalid, nowhere, refused
from kit.expect import eventually, together
from kit.wire import Wire


def test_versions_show_what_stood_and_who_wrote_it(shelf):
    memory = shelf.put("/life.md", "one", "first")
    shelf.edited(memory, content="two", summary="second")
    shelf.edited(memory, path="/moved.md")
    assert shelf.drop(memory).status == 204
    delete, rename, update, create = shelf.history()
    assert [v["operation"] for v in (create, update, rename, delete)] == ["create", "update", "rename", "delete"]
    assert [v["path"] for v in (create, update, rename, delete)] == ["/life.md", "/life.md", "/moved.md", "/moved.md"]
    assert [v["summary"] for v in (create, update, rename)] == ["first", "second", "second"]
    for version in (create, update, rename):
        assert version["status"] == "active" and "content" not in version
        assert shelf.version(version["memory_version_id"]).json()["content"] == ("one" if version is create else "two")
    assert not {"summary", "content", "content_sha256", "byte_size", "status"} & set(delete)
    for version in (create, update, rename, delete):
        assert version["author_kind"] == "api" and version["author_principal"]
        assert not {"author_session_id", "reflection_id", "rationale", "redacted_at", "redacted_by"} & set(version)


@pytest.mark.case("HR-02")
def test_redaction_reaches_summary_hash_and_size_but_not_who_when_and_where(shelf):
    memory = shelf.put("/k.md", "first canary-55\n", "canary-55 in summary")
    shelf.edited(memory, content="clean", summary="clean")
    before = shelf.version(memory["head_version_id"]).json()
    assert shelf.redact(memory["head_version_id"]).status == 204
    after = shelf.version(memory["head_version_id"]).json()
    gone = {"content", "summary", "content_sha256", "byte_size"}
    assert after.pop("redacted_at") and after.pop("redacted_by") == before["author_principal"]
    assert after == {k: v for k, v in before.items() if k not in gone}
    assert "canary-55" not in shelf.page().text
    assert shelf.redact(memory["head_version_id"]).status == 204


@pytest.mark.case("HR-03")
def test_the_head_of_a_live_memory_cannot_be_redacted(shelf):
    memory = shelf.put("/k.md", "x\n")
    refused(shelf.redact(memory["head_version_id"]), 409, "conflict", "memory_version_id")
    assert shelf.read(memory).json() == memory
    shelf.drop(memory)
    assert shelf.redact(memory["head_version_id"]).status == 204


@pytest.mark.case("HR-04")
def test_what_holds_no_text_cannot_be_restored(shelf):
    memory = shelf.put("/k.md", "one\n")
    head = shelf.edited(memory, content="two\n")
    shelf.redact(memory["head_version_id"])
    shelf.drop(memory)
    deletion = shelf.history()[0]["memory_version_id"]
    for version in (memory["head_version_id"], deletion):
        invalid(shelf.restore(version), "memory_version_id")
    refused(shelf.restore("00000000-0000-7000-8000-000000000000"), 404, "not_found")
    restored = shelf.restore(head["head_version_id"]).ok()
    assert [restored[k] for k in ("memory_id", "path", "content")] == [memory["memory_id"], "/k.md", "two\n"]
    assert shelf.operations(memory) == ["create", "update", "delete", "create"]


@pytest.mark.case("HR-05")
def test_a_deleted_memory_does_not_come_back_onto_a_taken_path(shelf):
    memory = shelf.put("/k.md", "one\n")
    shelf.drop(memory)
    shelf.put("/k.md", "new\n")
    refused(shelf.restore(memory["head_version_id"]), 409, "conflict", "path")
    assert shelf.at("/k.md").json()["content"] == "new\n"


def test_a_restore_over_a_live_memory_keeps_its_path_and_brings_its_summary_back(shelf):
    memory = shelf.put("/a.md", "old", "old summary")
    shelf.edited(memory, content="new", summary="new summary", path="/b.md")
    restored = shelf.restore(memory["head_version_id"]).ok()
    assert [restored[k] for k in ("path", "content", "summary")] == ["/b.md", "old", "old summary"]
    assert restored["memory_id"] == memory["memory_id"] and shelf.read(memory).json() == restored


@pytest.mark.case("HR-07")
def test_sweeping_and_restoring_at_once_never_loses_a_head(fresh_server):
    server = fresh_server(env={"STELE_VERSION_RETENTION_SECONDS": "1", "STELE_SWEEP_SECONDS": "1"})
    shelf = Shelf.made(Api(Wire(server.port, server.admin_key)))
    memories = [shelf.put(f"/{n}.md", "1") for n in range(20)]
    oldest = {memory["memory_id"]: [memory["head_version_id"]] for memory in memories}
    for text in range(2, 13):
        for memory in memories:
            head = shelf.edited(memory, content=str(text))["head_version_id"]
            oldest[memory["memory_id"]].append(head)

    def restore(memory):
        def run():
            for text in (1, 2):
                answer = shelf.restore(oldest[memory["memory_id"]][text - 1])
                assert answer.status in (200, 404), answer.text
                if answer.status == 200:
                    assert shelf.read(memory).ok()["content"] == str(text)
            return shelf.read(memory).ok()

        return run

    heads = together(*map(restore, memories))
    assert eventually(lambda: all(len(shelf.history(memory)) <= 10 for memory in memories), 20)
    for head in heads:
        assert shelf.version(head["head_version_id"]).ok()["content"] == head["content"]


def test_a_foreign_version_is_not_found(shelf, api):
    memory = shelf.put("/a.md")
    other = Shelf.made(api)
    for answer in (
        other.version(memory["head_version_id"]),
        other.restore(memory["head_version_id"]),
        other.redact(memory["head_version_id"]),
        shelf.version(nowhere()),
    ):
        refused(answer, 404, "not_found")
