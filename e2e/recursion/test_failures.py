"""What only a look behind the server's back can bring about: learned stores, damage, a pending redaction, a full disk."""

import contextlib
import os
import sqlite3
import subprocess
import uuid

import pytest

from api import STORES, Api, Shelf, invalid, refused
from kit.expect import eventually
from kit.ids import public_id
from kit.wire import Wire


def shelf_on(server) -> Shelf:
    return Shelf.made(Api(Wire(server.port, server.admin_key)))


@contextlib.contextmanager
def stopped(server):
    """The database of a server that is started again afterwards."""
    server.stop()
    with contextlib.closing(sqlite3.connect(server.database)) as connection, connection:
        yield connection
    server.start()


@pytest.mark.case("AC-07")
def test_a_learned_store_is_read_and_redacted_but_not_edited_by_hand(fresh_server):
    server = fresh_server()
    shelf = shelf_on(server)
    memory = shelf.put("/x.md", "1")
    head = shelf.edited(memory, content="2")
    with stopped(server) as database:
        database.execute("UPDATE stores SET origin = 1 WHERE id = ?", (uuid.UUID(shelf.id).bytes,))
    for answer in (
        shelf.create("/y.md"),
        shelf.create(""),
        shelf.edit(memory, content="z"),
        shelf.drop(memory),
        shelf.restore(memory["head_version_id"]),
        shelf.api("POST", f"{shelf.route}/archive"),
        shelf.api("POST", shelf.route, {"name": "mine"}),
        shelf.api("DELETE", shelf.route),
    ):
        invalid(answer, "memory_store_id")
    refused(shelf.drop({"memory_id": str(uuid.uuid4())}), 404, "not_found")
    there = f"/v1/memory_stores/{public_id('memstore', uuid.UUID(shelf.id))}/memories"
    shelf.api.wire("POST", there, json={"path": "/y.md", "content": "x"}).refused(400, "invalid_request_error")
    assert shelf.read(memory).ok() == head and len(shelf.history()) == 2
    assert shelf.redact(memory["head_version_id"]).status == 204
    (store,) = shelf.api.ok("GET", STORES, query={"origin": "reflection"})["memory_stores"]
    assert (store["memory_store_id"], store["origin"]) == (shelf.id, "reflection")


def test_a_damaged_record_fails_alone_and_says_nothing_about_itself(fresh_server):
    server = fresh_server(env={"STELE_COMPRESSION": "off"})
    shelf = shelf_on(server)
    damaged, sound = shelf.put("/damaged.md", "abc"), shelf.put("/sound.md", "abc")
    with stopped(server) as database:
        head = uuid.UUID(damaged["head_version_id"]).bytes
        database.execute("UPDATE versions SET content = ? WHERE id = ?", (b"abd", head))
    for answer in (shelf.read(damaged), shelf.at("/damaged.md"), shelf.version(damaged["head_version_id"])):
        body = refused(answer, 500, "internal_error")
        assert "damaged" not in body["message"] and damaged["memory_id"] not in answer.text
    assert shelf.read(sound).ok() == sound


def test_a_redaction_that_a_reader_holds_up_says_when_to_come_again(fresh_server):
    server = fresh_server()
    shelf = shelf_on(server)
    memory = shelf.put("/a.md", "1")
    shelf.edited(memory, content="2")
    with contextlib.closing(sqlite3.connect(server.database)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM versions").fetchall()
        shelf.edited(memory, content="3")
        answer = shelf.redact(memory["head_version_id"])
        refused(answer, 503, "service_unavailable")
        assert int(answer.headers["retry-after"]) > 0
    assert shelf.redact(memory["head_version_id"]).status == 204


def test_a_full_disk_refuses_writes_and_nothing_else(tmp_path, fresh_server):
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(*options: str) -> bool:
        return subprocess.run(["mount", *options, str(disk)], capture_output=True).returncode == 0

    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=4g", "stele-e2e"):
        pytest.skip("needs root and the right to mount a tmpfs")
    try:
        shelf = shelf_on(fresh_server(data_dir=disk / "data"))
        memory = shelf.put("/a.md")
        assert mount("-o", "remount,size=64m")
        with (disk / "ballast").open("wb") as ballast:
            room = os.statvfs(disk)
            ballast.write(bytes(room.f_bavail * room.f_frsize - (2 << 20)))
        attempts = iter(range(1_000))
        assert eventually(lambda: shelf.create(f"/{next(attempts)}.md").status == 503, 30, 0.2)
        answer = shelf.edit(memory, content="y")
        assert refused(answer, 503, "service_unavailable")["details"]["reason"] == "storage_full"
        assert int(answer.headers["retry-after"]) > 0
        assert shelf.read(memory).ok() == memory
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
