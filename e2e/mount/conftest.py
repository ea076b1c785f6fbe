"""Fixtures: one server for most tests, own ones for tests that stop theirs; mounts that are always taken away."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from kit.server import STELE_BIN, Server
from kit.wire import Wire
from mounts import Mounted, Store, wire_of


@pytest.fixture(scope="session", autouse=True)
def _binary():
    if not os.access(STELE_BIN, os.X_OK):
        pytest.exit(f"no stele binary at {STELE_BIN}: build it, or set STELE_BIN", returncode=3)


def why_no_fuse() -> str | None:
    try:
        device = os.stat("/dev/fuse")
    except OSError:
        return "there is no /dev/fuse here: nothing can be mounted"
    if not stat.S_ISCHR(device.st_mode) or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse may not be opened here: nothing can be mounted"
    return None


@pytest.fixture(scope="session")
def fuse():
    """Skips what needs real mounts where none are possible."""
    if why := why_no_fuse():
        pytest.skip(why)


@pytest.fixture
def root():
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server that most tests share; they keep apart by making stores of their own."""
    shared = Server(tmp_path_factory.mktemp("shared"))
    try:
        yield shared.start()
    finally:
        shared.close()


@pytest.fixture
def fresh_server(tmp_path):
    """`fresh_server(env=...)`: a running server of the test's own on an empty directory."""
    made: list[Server] = []

    def make(**options) -> Server:
        made.append(Server(tmp_path / f"server{len(made)}", **options))
        return made[-1].start()

    yield make
    for own in made:
        own.close()


@pytest.fixture(scope="session")
def wire(server) -> Wire:
    return wire_of(server)


@pytest.fixture
def store(wire) -> Store:
    """An empty store on the shared server."""
    return Store(wire)


@pytest.fixture
def home():
    """A directory that every user may enter, as those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="stele-e2e-", ignore_cleanup_errors=True) as made:
        os.chmod(made, 0o755)
        (Path(made) / "tmp").mkdir(mode=0o777)
        os.chmod(Path(made) / "tmp", 0o1777)
        yield Path(made)


@pytest.fixture
def new_mount(fuse, server, home):
    """`new_mount("--store", id, ...)`: a mount; `start=False` only prepares it."""
    made: list[Mounted] = []

    def make(*args: str, start: bool = True, of: Server | None = None, target: Path | None = None, **options) -> Mounted:
        target = target or home / f"mount{len(made)}"
        options = {"url": (of or server).url, "key": (of or server).admin_key} | options
        made.append(Mounted(home, *args, target=target, **options))
        return made[-1].start() if start else made[-1]

    yield make
    for mount in made:
        mount.close()


@pytest.fixture
def mount(new_mount, store) -> Mounted:
    """The store, mounted for writing."""
    return new_mount("--store", store.id)


@pytest.fixture
def mnt(mount) -> Path:
    return mount.target
