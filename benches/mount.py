#!/usr/bin/env python3
"""The mount beside ext4 in the same run: `benches/mount.py target/release/stele [mount program]`.

2,000 files of 4 kB in 40 folders, walked, stat-ed, searched and read: warm on a read-only and on a read-write mount, and
once with nothing cached; a mount of 10,000 memories until `find` is complete beside its snapshot over HTTP; create, write
and close one after the other beside create and fsync on ext4 plus an empty HTTP round trip; how soon a change made elsewhere
is seen; what an idle mount costs. Wants an idle machine, root, and a folder on ext4 (`STELE_BENCH_DIR`, else the working
directory). The mount program is called with STORE[:ro] DIR and ends with its standard input; without one it is
`stele mount`. Prints figures, bars and the requests that the server saw,
without those that wait for changes.
"""

import http.client
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

random.seed(11)
WORDS = ["".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random.randint(3, 9))) for _ in range(5_000)]
BETA = {"anthropic-beta": "agent-memory-2026-07-22"}


def text(size: int = 4096) -> str:
    return (" ".join(random.choice(WORDS) for _ in range(size // 4)))[:size]


class Server:
    def __init__(self, binary: str) -> None:
        self.home = tempfile.mkdtemp(prefix="stele-bench-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [binary, "serve", "--data-dir", self.home, "--listen", f"127.0.0.1:{self.port}"]
        env = os.environ | {"STELE_LOG": "error"}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.key = None
        for _ in range(200):
            try:
                self("GET", "/readyz", plain=True)
                break
            except OSError:
                time.sleep(0.05)
        self.key = pathlib.Path(self.home, "admin-key").read_text().strip()

    def __call__(self, method, path, body=None, plain=False):
        if not hasattr(self, "connection"):
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {} if plain else BETA | {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        try:
            self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = self.connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException):
            del self.connection
            raise
        assert answer.status < 300, (path, answer.status, raw[:300])
        return raw if plain else json.loads(raw)

    def fill(self, name: str, count: int, size: int, folders: int = 40) -> str:
        store = self("POST", "/v1/memory_stores", {"name": name})["id"]
        for begin in range(0, count, 500):
            changes = [
                {"op": "create", "path": f"/d{k % folders:02}/f{k:05}.md", "content": text(size)} for k in range(begin, min(begin + 500, count))
            ]
            self("POST", f"/v1/memory_stores/{store}/changesets", {"changes": changes})
        return store

    def requests(self) -> int:
        lines = self("GET", "/metrics", plain=True).decode().splitlines()
        counted = [line for line in lines if line.startswith("stele_http_request_duration_seconds_count")]
        return int(sum(float(line.rsplit(" ", 1)[1]) for line in counted if "/metrics" not in line and "/changes" not in line))


class Mount:
    def __init__(self, server: Server, store: str, read_only: bool = False) -> None:
        self.dir = tempfile.mkdtemp(prefix="stele-bench-m-")
        what = store + (":ro" if read_only else "")
        command = [MOUNT, what, self.dir] if MOUNT else [BINARY, "mount", "--store", what, self.dir]
        env = os.environ | {"STELE_URL": f"http://127.0.0.1:{server.port}", "STELE_API_KEY": server.key}
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.dir):
            assert self.process.poll() is None, "the mount program has ended"
            time.sleep(0.001)

    def end(self) -> None:
        self.process.stdin.close()
        if not MOUNT:
            self.process.terminate()
        self.process.wait(20)
        os.rmdir(self.dir)


def timed(command, dir: str, times: int = 5) -> float:
    """Milliseconds, median."""
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        if callable(command):
            command(dir)
        else:
            subprocess.run(["bash", "-c", command], cwd=dir, stdout=subprocess.DEVNULL, check=True)
        took.append((time.perf_counter() - begin) * 1000)
    return statistics.median(took)


def stats(dir: str) -> None:
    for d in range(40):
        for k in range(d, 2000, 40):
            os.lstat(f"{dir}/d{d:02}/f{k:05}.md")


SEARCH = "rg -l zzzz . || true" if shutil.which("rg") else "grep -rl zzzz . || true"
WALKS = {"find": "find . -type f", "stat": stats, "rg" if shutil.which("rg") else "grep -r": SEARCH, "cat": "cat d*/*"}


def warm(server: Server, store: str, plain: str) -> None:
    for read_only, bars in ((True, (1.5, 1.5, 1.5, 1.5)), (False, (1.5, 1.5, 3, 6))):
        mount = Mount(server, store, read_only)
        subprocess.run(["bash", "-c", "cat d*/*; find . -type f"], cwd=mount.dir, stdout=subprocess.DEVNULL, check=True)
        before = server.requests()
        for (name, command), bar in zip(WALKS.items(), bars):
            ext4, fuse = timed(command, plain), timed(command, mount.dir)
            kind = "read-only" if read_only else "read-write"
            print(f"warm, {kind:10} {name:8} {fuse:8.1f} ms, ext4 {ext4:8.1f} ms: {fuse / ext4:5.2f} times (bar {bar})")
        print(f"warm, {'read-only' if read_only else 'read-write'}: {server.requests() - before} requests in all walks")
        mount.end()


def cold(server: Server, store: str) -> None:
    mount = Mount(server, store, read_only=True)
    before = server.requests()
    begin = time.perf_counter()
    subprocess.run(["bash", "-c", "cat d*/*"], cwd=mount.dir, stdout=subprocess.DEVNULL, check=True)
    print(f"first full read of 2,000: {time.perf_counter() - begin:.3f} s (bar 1 s), {server.requests() - before} requests")
    mount.end()


def large(server: Server) -> None:
    store = server.fill("large", 10_000, 64)
    uuid = core_id(store)
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        server("GET", f"/stele/v1/memory_stores/{uuid}/snapshot")
        took.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    mount = Mount(server, store, read_only=True)
    found = subprocess.run(["find", ".", "-type", "f"], cwd=mount.dir, capture_output=True, check=True).stdout.count(b"\n")
    whole = time.perf_counter() - begin
    assert found == 10_000, found
    print(f"mount of 10,000 until find is complete: {whole:.3f} s, snapshot {min(took):.3f} s: {whole / min(took):.2f} times (bars 2, 1.5 s)")
    status = pathlib.Path(f"/proc/{mount.process.pid}/status").read_text()
    rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    threads = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("Threads"))
    before, ticks = server.requests(), cpu(mount.process.pid)
    time.sleep(20)
    print(f"idle with 10,000 listed: {rss / 1024:.0f} MB (bar 60), {threads} threads, {server.requests() - before} requests "
          f"and {(cpu(mount.process.pid) - ticks) * 10} ms of CPU in 20 s")
    mount.end()


def cpu(pid: int) -> int:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def core_id(public: str) -> str:
    import uuid

    number = 0
    for digit in public.rsplit("_", 1)[1].removeprefix("01"):
        number = number * 58 + "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".index(digit)
    return str(uuid.UUID(int=number))


def writes(server: Server, plain: str) -> None:
    store = server("POST", "/v1/memory_stores", {"name": "writes"})["id"]
    mount = Mount(server, store)
    body = text(1024).encode()

    def write(dir: str, k: int, sync: bool) -> float:
        begin = time.perf_counter()
        fd = os.open(f"{dir}/w{k}.md", os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
        os.write(fd, body)
        if sync:
            os.fsync(fd)
        os.close(fd)
        return (time.perf_counter() - begin) * 1000

    there, here, trips = [], [], []
    for k in range(300):
        there.append(write(plain, k, True))
        here.append(write(mount.dir, k, False))
        begin = time.perf_counter()
        server("GET", "/healthz", plain=True)
        trips.append((time.perf_counter() - begin) * 1000)
    here, there, trip = statistics.median(here), statistics.median(there), statistics.median(trips)
    print(f"create, write, close: p50 {here:.2f} ms; ext4 with fsync {there:.2f}, a round trip {trip:.2f}: "
          f"{(here - trip) / there:.2f} times ext4 behind the trip (bar 2)")
    before = server.requests()
    for k in range(300, 500):
        write(mount.dir, k, False)
    print(f"200 creations one after the other: {server.requests() - before} requests")
    mount.end()


def visible(server: Server) -> None:
    store = server("POST", "/v1/memory_stores", {"name": "seen"})["id"]
    memory = server("POST", f"/v1/memory_stores/{store}/memories", {"path": "/a.md", "content": "0"})["id"]
    mount = Mount(server, store, read_only=True)
    took = []
    for k in range(1, 201):
        server("POST", f"/v1/memory_stores/{store}/memories/{memory}", {"content": str(k)})
        begin = time.perf_counter()
        while pathlib.Path(mount.dir, "a.md").read_text() != str(k):
            time.sleep(0.0005)
        took.append((time.perf_counter() - begin) * 1000)
    took.sort()
    print(f"a change made elsewhere is seen after {took[100]:.1f} ms, {took[197]:.1f} ms at the 99th percentile (bar 100)")
    mount.end()


def main() -> None:
    plain = tempfile.mkdtemp(prefix="stele-bench-ext4-", dir=os.environ.get("STELE_BENCH_DIR", "."))
    server = Server(BINARY)
    try:
        store = server.fill("walks", 2_000, 4096)
        mount = Mount(server, store, read_only=True)
        subprocess.run(["cp", "-r", mount.dir + "/.", plain], check=True)
        mount.end()
        subprocess.run(["sync"], check=True)
        cold(server, store)
        warm(server, store, plain)
        large(server)
        writes(server, plain)
        visible(server)
    finally:
        server.process.terminate()
        server.process.wait(20)
        shutil.rmtree(server.home)
        shutil.rmtree(plain)


BINARY = os.path.abspath(sys.argv[1])
MOUNT = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
if __name__ == "__main__":
    main()
