"""Old versions go when their time has come, and nothing else goes or comes back."""

import sqlite3

import pytest

from kit.expect import eventually, not_found
from kit.ids import uuid_of
from kit.tree import Tree

FORTY_DAYS = 40 * 24 * 3600 * 1_000_000  # in the database's microseconds


def age(database, version_ids: list[str]) -> None:
    """Let versions look as if written 40 days ago. The server must be stopped."""
    rows = [(FORTY_DAYS, uuid_of(version).bytes) for version in version_ids]
    with sqlite3.connect(database) as connection:
        changed = connection.executemany("UPDATE versions SET created_at = created_at - ? WHERE id = ?", rows).rowcount
    connection.close()
    assert changed == len(rows)


def written(tree: Tree, path: str, versions: int):
    memory = tree.put(path, "1")
    for i in range(2, versions + 1):
        tree.edit(memory.id, content=str(i))
    return memory


@pytest.mark.case("HR-06")
def test_the_sweep_at_start_keeps_the_newest_ten_of_what_lives(fresh_server, new_client):
    server = fresh_server()
    tree = Tree.planted(new_client(server))
    live, dead, young = written(tree, "/live.md", 15), written(tree, "/dead.md", 3), written(tree, "/young.md", 15)
    tree.drop(dead.id)
    history = tree.versions(live.id)
    old = [v.id for v in history + tree.versions(dead.id)]
    assert server.stop() == 0
    age(server.database, old)
    server.start()
    assert eventually(lambda: tree.versions(dead.id) == [] and len(tree.versions(live.id)) <= 10, 20)
    assert [v.id for v in tree.versions(live.id)] == [v.id for v in history[:10]]
    assert len(tree.versions(young.id)) == 15
    assert tree.read(live.id).content == "15"
    for swept in old[10:]:
        with not_found():
            tree.version(swept)
    assert server.stop() == 0 and server.check_database().returncode == 0


@pytest.mark.case("HR-06")
def test_the_sweep_also_runs_while_serving(fresh_server, new_client):
    server = fresh_server(env={"STELE_VERSION_RETENTION_SECONDS": "1", "STELE_SWEEP_SECONDS": "1"})
    tree = Tree.planted(new_client(server))
    live = written(tree, "/live.md", 15)
    assert eventually(lambda: len(tree.versions(live.id)) == 10, 20)
    assert tree.read(live.id).content == "15" and tree.versions(live.id)[0].id == tree.read(live.id).memory_version_id


@pytest.mark.case("HR-09")
def test_the_sweep_does_not_revive_what_was_deleted(fresh_server, new_client):
    server = fresh_server(env={"STELE_VERSION_RETENTION_SECONDS": "1", "STELE_SWEEP_SECONDS": "1"})
    tree = Tree.planted(new_client(server))
    for i in range(50):
        memory = tree.put(f"/{i}.md", "0")
        tree.edit(memory.id, content="1")
        tree.drop(memory.id)
    assert eventually(lambda: tree.versions() == [], 20)
    assert tree.list() == []
    tree.put("/0.md", "new")
    assert tree.texts() == {"/0.md": "new"}
    assert server.stop() == 0 and server.check_database().returncode == 0
