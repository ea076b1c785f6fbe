"""A `stele serve` process of its own, with everything it writes below one directory."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

E2E = Path(__file__).resolve().parents[2]
STELE_BIN = Path(os.environ.get("STELE_BIN", E2E / "../target/debug/stele")).resolve()
START_SECONDS = 20
STOP_SECONDS = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def clean_env(home: Path, extra: dict[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without its own Stele: neither settings nor a per-user config file reach the tests."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("STELE_", "XDG_"))}
    return env | {"HOME": str(home), "TMPDIR": str(home / "tmp"), "NO_COLOR": "1"} | (extra or {})


def stele(
    *args: str, home: Path, env: dict[str, str] | None = None, timeout: float = 30
) -> subprocess.CompletedProcess:
    """Run one command of the binary to its end."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        [STELE_BIN, *args], env=clean_env(home, env), cwd=home, timeout=timeout, capture_output=True, text=True
    )


class Server:
    def __init__(self, home: Path, *, env: dict[str, str] | None = None, data_dir: Path | None = None) -> None:
        self.home = home
        self.env = env or {}
        self.data_dir = data_dir or home / "data"
        self.tmp_dir = home / "tmp"
        self.log_file = home / "server.log"
        self.port = free_port()
        self.process: subprocess.Popen | None = None
        self.tmp_dir.mkdir(parents=True, exist_ok=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin_key(self) -> str:
        return (self.data_dir / "admin-key").read_text().strip()

    @property
    def database(self) -> Path:
        return self.data_dir / "stele.db"

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self, *, wrapper: tuple[str, ...] = ()) -> Server:
        """`wrapper` is a command that runs the server in its own process, such as a tracer."""
        self.spawn(wrapper=wrapper)
        self.wait_until_ready()
        return self

    def spawn(self, *, wrapper: tuple[str, ...] = ()) -> None:
        command = [
            *wrapper,
            str(STELE_BIN),
            "serve",
            "--data-dir",
            str(self.data_dir),
            "--listen",
            f"127.0.0.1:{self.port}",
        ]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env=clean_env(self.home, self.env),
                cwd=self.home,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def wait_until_ready(self, seconds: float = START_SECONDS) -> None:
        end = time.monotonic() + seconds
        while not self.answers("/readyz"):
            assert self.running, f"stele ended with {self.process.returncode}:\n{self.log[-2000:]}"
            assert time.monotonic() < end, f"stele was not ready within {seconds} s:\n{self.log[-2000:]}"
            time.sleep(0.02)

    def answers(self, path: str) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def stop(self) -> int:
        """Ask it to drain; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it whatever state it is in (for teardown)."""
        if not self.running:
            return
        try:
            self.stop()
        except subprocess.TimeoutExpired:
            self.kill()

    def check_database(self) -> subprocess.CompletedProcess:
        return stele("db", "check", "--data-dir", str(self.data_dir), home=self.home)
