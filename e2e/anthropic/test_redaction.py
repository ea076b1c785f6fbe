"""Redaction removes the bytes themselves: no file of the data directory holds them once it is answered.

The servers here keep contents plain (STELE_COMPRESSION=off), so that a search can see them; each test first proves
that it does.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kit.disk import files_holding
from kit.expect import bad_request
from kit.tree import Tree, sha
from kit.wire import Wire

CANARY = "canary-7f3a91"
SECRET = f"token {CANARY} end\n"


class Vault:
    """A server whose files can be searched, and a store on it."""

    def __init__(self, server, client) -> None:
        self.server = server
        self.tree = Tree.planted(client)
        self.wire = Wire(server.port, server.admin_key)

    def holders(self, needle: str | bytes = CANARY) -> list[str]:
        return files_holding(self.server.data_dir, needle.encode() if isinstance(needle, str) else needle)

    def assert_gone(self, needle: str | bytes = CANARY) -> None:
        assert self.holders(needle) == []


@pytest.fixture
def vault(fresh_server, new_client):
    server = fresh_server(env={"STELE_COMPRESSION": "off", "STELE_LOG": "trace"})
    return Vault(server, new_client(server))


@pytest.mark.case("HR-01")
def test_redacted_text_is_nowhere_on_disk(vault):
    tree = vault.tree
    memory = tree.put("/k.md", SECRET)
    tree.edit(memory.id, content="clean\n")
    assert vault.holders()
    redacted = tree.redact(memory.memory_version_id)
    vault.assert_gone()
    assert files_holding(vault.server.tmp_dir, CANARY.encode()) == [] and CANARY not in vault.server.log
    assert (redacted.content, redacted.content_sha256, redacted.content_size_bytes, redacted.path) == (None,) * 4
    assert redacted.redacted_at > redacted.created_at and redacted.operation == "created"
    assert redacted.redacted_by == redacted.created_by


@pytest.mark.case("HR-01")
def test_its_hash_is_nowhere_either(vault):
    """A hash would let anybody test a guess."""
    tree = vault.tree
    memory = tree.put("/k.md", SECRET)
    tree.edit(memory.id, content="clean\n")
    tree.redact(memory.memory_version_id)
    vault.assert_gone(sha(SECRET))
    vault.assert_gone(bytes.fromhex(sha(SECRET)))


@pytest.mark.case("HR-01")
def test_a_redacted_path_is_nowhere_on_disk(vault):
    tree = vault.tree
    for i in range(200):  # enough for the indexes to have inner pages, which keep copies of their own
        tree.put(f"/filler/{i:03d}-{'x' * 100}")
    memory = tree.put(f"/filler/100-{CANARY}/file.md", "harmless\n")
    tree.edit(memory.id, path="/clean.md")
    assert vault.holders()
    tree.redact(memory.memory_version_id)
    vault.assert_gone()


@pytest.mark.case("HR-01")
def test_many_large_versions_are_all_gone(vault):
    tree = vault.tree
    memory = tree.put("/k.md", SECRET * 4_000)
    versions = [memory.memory_version_id]
    for i in range(20):
        versions.append(tree.edit(memory.id, content=f"{i} {SECRET}" * (1_000 + 100 * i)).memory_version_id)
    tree.edit(memory.id, content="clean\n")
    assert vault.holders()
    for version in versions:
        tree.redact(version)
    vault.assert_gone()
    assert [v.content for v in tree.versions(memory.id, view="full", limit=20)] == ["clean\n"] + [None] * 21


@pytest.mark.case("HR-01")
def test_every_version_of_a_deleted_memory_is_gone(vault):
    tree = vault.tree
    memory = tree.put(f"/{CANARY}.md", SECRET)
    tree.drop(memory.id)
    assert vault.holders()
    for version in tree.versions(memory.id):
        tree.redact(version.id)
    vault.assert_gone()


@pytest.mark.case("HR-01")
def test_readers_do_not_keep_it_alive(vault):
    """A redaction is not answered before no open snapshot holds the log back."""
    tree = vault.tree
    for i in range(60):
        tree.put(f"/big{i:02d}.md", "x" * 50_000)
    memory = tree.put("/k.md", SECRET)
    tree.edit(memory.id, content="clean\n")
    done = threading.Event()

    def walk():
        with vault.wire.kept_alive() as call:
            while not done.is_set():
                call("GET", f"{tree.route}/memories", query={"view": "full"}).ok()

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(walk) for _ in range(4)]
        try:
            tree.redact(memory.memory_version_id)
            vault.assert_gone()
        finally:
            done.set()
    for reader in readers:
        reader.result()


@pytest.mark.case("HR-01")
def test_a_kill_right_after_the_answer_brings_nothing_back(vault):
    tree = vault.tree
    memory = tree.put("/k.md", SECRET)
    tree.edit(memory.id, content="clean\n")
    tree.redact(memory.memory_version_id)
    vault.server.kill()
    vault.assert_gone()
    vault.server.start()
    vault.assert_gone()
    assert tree.version(memory.memory_version_id).content is None
    assert tree.read(memory.id).content == "clean\n"


def test_equal_bytes_that_live_on_are_untouched(vault):
    tree = vault.tree
    first, other = tree.put("/k.md", SECRET), tree.put("/other.md", SECRET)
    tree.edit(first.id, content="clean\n")
    tree.redact(first.memory_version_id)
    assert tree.read(other.id).content == SECRET
    assert tree.version(other.memory_version_id).content == SECRET


def test_no_answer_shows_a_redacted_text_its_hash_or_its_path(wire, tree):
    memory = tree.put(f"/{CANARY}/k.md", SECRET)
    tree.edit(memory.id, content="clean\n", path="/k.md")
    version = f"{tree.route}/memory_versions/{memory.memory_version_id}"
    assert CANARY in wire("GET", version).text  # so that a cached answer would be noticed
    tree.redact(memory.memory_version_id)
    for path in (
        version,
        f"{tree.route}/memory_versions",
        f"{tree.route}/memories",
        f"{tree.route}/memories/{memory.id}",
    ):
        for view in ("full", "basic"):
            answer = wire("GET", path, query={"view": view})
            answer.ok()
            assert CANARY not in answer.text and sha(SECRET) not in answer.text
    assert [v.id for v in tree.versions(memory.id, operation="created")] == [memory.memory_version_id]


@pytest.mark.case("HR-03")
def test_the_head_of_a_live_memory_cannot_be_redacted(tree):
    memory = tree.put("/k.md", "x\n")
    with bad_request():
        tree.redact(memory.memory_version_id)
    assert tree.read(memory.id).content == "x\n" and tree.version(memory.memory_version_id).redacted_at is None
    tree.edit(memory.id, content="y\n")
    assert tree.redact(memory.memory_version_id).content is None


@pytest.mark.case("RT-06")
def test_a_second_redaction_keeps_the_first_time(tree):
    memory = tree.put("/k.md", "x\n")
    tree.edit(memory.id, content="y\n")
    first = tree.redact(memory.memory_version_id)
    assert tree.redact(memory.memory_version_id).model_dump() == first.model_dump()
