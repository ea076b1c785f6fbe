"""A disk that fills up: writes say so, reads go on, and room is enough to go on writing."""

import os
import subprocess

import pytest

from kit.expect import eventually
from kit.tree import Tree
from kit.wire import Wire


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path):
    """A file system whose free space is a matter of a mount option: resizing it needs no gigabytes of memory."""
    directory = tmp_path / "disk"
    directory.mkdir()
    if os.geteuid() != 0 or not mount("-t", "tmpfs", "-o", "size=4g", "stele-e2e", str(directory)):
        pytest.skip("needs root and the right to mount a tmpfs")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def resize(directory, size: str) -> None:
    assert mount("-o", f"remount,size={size}", str(directory))


def test_a_full_disk_refuses_writes_and_nothing_else(disk, fresh_server, new_client):
    server = fresh_server(data_dir=disk / "data")
    tree, wire = Tree.planted(new_client(server)), Wire(server.port, server.admin_key)
    memory = tree.put("/a.md", "before")

    def create(path):
        return wire("POST", f"{tree.route}/memories", json={"path": path, "content": "x"})

    resize(disk, "64m")
    with (disk / "ballast").open("wb") as ballast:
        room = os.statvfs(disk)
        ballast.write(bytes(room.f_bavail * room.f_frsize - (2 << 20)))
    attempts = iter(range(1_000))
    assert eventually(lambda: create(f"/{next(attempts)}.md").status == 503, 30, 0.2)
    stored = tree.paths()
    for answer in (
        create("/full.md"),
        wire("POST", f"{tree.route}/memories/{memory.id}", json={"content": "y"}),
        wire("POST", "/v1/memory_stores", json={"name": "full"}),
    ):
        assert answer.refused(503, "api_error")["details"]["error_code"] == "storage_full"
        assert int(answer.headers["retry-after"]) > 0
    assert tree.read(memory.id).content == "before" and tree.paths() == stored
    assert server.answers("/healthz")
    resize(disk, "4g")
    assert eventually(lambda: create("/room.md").status in (200, 409), 30, 0.2)
    tree.edit(memory.id, content="after")
    assert tree.read(memory.id).content == "after"
