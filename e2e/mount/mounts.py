"""Real mounts: one `stele mount` process each, the kernel's table of mounts, commands as users run them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

from kit.server import STELE_BIN, Server, clean_env
from kit.wire import MANAGED, Wire

NOBODY = 65534


def until(check, seconds: float = 30, every: float = 0.03):
    """The last value of check(), as soon as it is true. The seconds are for machines that are busy, not a promise."""
    end = time.monotonic() + seconds
    while True:
        value = check()
        if value or time.monotonic() > end:
            return value
        time.sleep(every)


def table(below: str | Path) -> list[str]:
    """Mount points at or below a path, one entry for each line of the kernel's table."""
    points = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), line.split()[4])
        if point == str(below) or point.startswith(f"{below}/"):
            points.append(point)
    return points


class Run:
    """How a command ended."""

    def __init__(self, command, *, timeout: float = 60, **options) -> None:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True, **options
            )
            try:
                self.exit = process.wait(timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise AssertionError(f"{command} hung for {timeout} s") from None
            for name, file in (("out", out), ("err", err)):
                file.seek(0)
                setattr(self, name, file.read().decode(errors="surrogateescape"))

    def __repr__(self) -> str:
        return f"exit {self.exit}, stdout {self.out[-600:]!r}, stderr {self.err[-600:]!r}"

    def ok(self) -> str:
        assert self.exit == 0, self
        return self.out

    def refused(self, errno: int) -> None:
        """The command failed and says why in the system's words."""
        assert self.exit != 0, self
        assert os.strerror(errno) in self.err or f"[Errno {errno}]" in self.err, self


def sh(script: str, *, uid: int | None = None, cwd: str | Path | None = None, timeout: float = 60, **names) -> Run:
    """A bash script; keyword arguments are its variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("STELE_")}
    env |= {"LC_ALL": "C.UTF-8", "LANGUAGE": "", "HOME": "/tmp"} | {k: str(v) for k, v in names.items()}
    who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    return Run(["bash", "-c", script], timeout=timeout, env=env, cwd=cwd or "/", umask=0o022, **who)


class Mounted:
    """A `stele mount`, in the foreground unless an argument says otherwise."""

    def __init__(
        self, home: Path, *args: str, target: Path, points: list[Path] | None = None, url: str, key: str,
        uid: int | None = None, prefix: tuple[str, ...] = (), env: dict[str, str] | None = None,
    ) -> None:
        self.home, self.target, self.points = home, target, points or [target]
        self.env = clean_env(home, {"STELE_URL": url, "STELE_API_KEY": key} | (env or {}))
        self.who = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
        self.command = [*prefix, str(STELE_BIN), "mount", *args, str(target)]
        self.log = tempfile.TemporaryFile()
        self.process: subprocess.Popen | None = None

    def spawn(self) -> Mounted:
        self.process = subprocess.Popen(
            self.command, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, **self.who
        )
        return self

    def start(self) -> Mounted:
        self.spawn()
        assert until(self._up, 20), f"not mounted after 20 s: {self.said}"
        return self

    def _up(self) -> bool:
        assert self.process.poll() in (None, 0), f"stele mount ended with {self.process.returncode}: {self.said}"
        return self.is_up()

    def is_up(self) -> bool:
        """Every mount point stands once, and answers."""
        def answers(point: Path) -> bool:
            return table(point).count(str(point)) >= 1 and subprocess.run(
                ["stat", "-f", str(point)], capture_output=True, timeout=30, **self.who
            ).returncode == 0

        return all(answers(point) for point in self.points)

    @property
    def said(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-3000:]

    @property
    def pid(self) -> int:
        return self.process.pid

    def tell(self, *args: str, timeout: float = 60) -> Run:
        """`stele mount ...` about this mount, by the same user."""
        return Run([str(STELE_BIN), "mount", *args], env=self.env, cwd="/", timeout=timeout, **self.who)

    def status(self) -> dict:
        (mount,) = json.loads(self.tell("status", "--json", str(self.target)).ok())["data"]
        return mount

    def stop(self, seconds: float = 25) -> int:
        """SIGTERM, and wait until it is gone."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        assert not [p for p in self.points if table(p)], f"SIGTERM left a mount behind: {self.said}"
        return code

    def close(self) -> None:
        """End it whatever state it is in (for teardown)."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(25)
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(OSError, AssertionError, ValueError):
            self.tell("stop", str(self.target))
        for point in reversed(table(self.target)):
            subprocess.run(["umount", "-l", point], capture_output=True)


class Store:
    """A store over plain HTTP, in short words."""

    def __init__(self, wire: Wire, name: str | None = None) -> None:
        self.wire = wire
        self.id = wire("POST", "/v1/memory_stores", json={"name": name or f"fs {uuid.uuid4().hex[:8]}"}).ok()["id"]
        self.route = f"/v1/memory_stores/{self.id}"

    def put(self, path: str, content: str) -> str:
        return self.wire("POST", f"{self.route}/memories", json={"path": path, "content": content}).ok()["id"]

    def fill(self, memories: dict[str, str]) -> dict[str, str]:
        return {path: self.put(path, content) for path, content in memories.items()}

    def edit(self, memory_id: str, **change) -> dict:
        return self.wire("POST", f"{self.route}/memories/{memory_id}", json=change).ok()

    def drop(self, memory_id: str) -> None:
        self.wire("DELETE", f"{self.route}/memories/{memory_id}").ok()

    def _all(self, what: str) -> list[dict]:
        found, page = [], ""
        while True:
            answer = self.wire("GET", f"{self.route}/{what}{page}").ok()
            found += answer["data"]
            if not answer["next_page"]:
                return found
            page = f"&page={answer['next_page']}"

    def texts(self) -> dict[str, str]:
        return {m["path"]: m["content"] for m in self._all("memories?limit=20&view=full")}

    def ids(self) -> dict[str, str]:
        return {m["path"]: m["id"] for m in self._all("memories?limit=100")}

    def versions(self, memory_id: str | None = None) -> list[dict]:
        """Oldest first."""
        of = f"&memory_id={memory_id}" if memory_id else ""
        return self._all(f"memory_versions?limit=100{of}")[::-1]

    def operations(self, memory_id: str | None = None) -> list[str]:
        return [version["operation"] for version in self.versions(memory_id)]


def start_session(wire: Wire, *stores: Store, access: str = "read_write") -> dict:
    """A session with these stores attached."""
    tag = uuid.uuid4().hex[:8]

    def post(path: str, body: dict) -> dict:
        return wire("POST", path, json=body, beta=MANAGED).ok()

    agent = post("/v1/agents", {"name": f"fs {tag}", "model": "claude-sonnet-5-5"})
    environment = post("/v1/environments", {"name": f"fs {tag}", "config": {"type": "self_hosted"}})
    resources = [{"type": "memory_store", "memory_store_id": s.id, "access": access} for s in stores]
    return post("/v1/sessions", {"agent": agent["id"], "environment_id": environment["id"], "resources": resources})


def wire_of(server: Server) -> Wire:
    return Wire(server.port, server.admin_key)
