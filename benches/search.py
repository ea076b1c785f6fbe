#!/usr/bin/env python3
"""Search, the change feed and sessions beside hello round trips and memory writes of the same run: `benches/search.py target/release/stele`.

Wants an idle machine. Prints ratios and differences; benches/RESULTS.md has those of a run.
"""

import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

random.seed(7)
WORDS = ["".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(random.randint(3, 9))) for _ in range(20_000)]


def text(words: int = 200) -> str:
    """Some frequent words and many rare ones, as in a language."""
    return " ".join(WORDS[min(int(random.paretovariate(0.7)) - 1, len(WORDS) - 1)] for _ in range(words))


class Server:
    def __init__(self, binary: str) -> None:
        self.home = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [binary, "serve", "--data-dir", self.home.name, "--listen", f"127.0.0.1:{self.port}"]
        env = os.environ | {"STELE_LOG": "error", "STELE_MAX_MEMORIES_PER_STORE": "100000"}
        self.process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                Client(self, key=None)("GET", "/readyz")
                break
            except OSError:
                time.sleep(0.05)
        with open(f"{self.home.name}/admin-key") as file:
            self.key = file.read().strip()

    def rss_mb(self) -> float:
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.home.cleanup()


class Client:
    def __init__(self, server: Server, key: str | None = "own") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        key = server.key if key == "own" else key or ""
        self.headers = {"x-api-key": key, "anthropic-beta": "agent-memory-2026-07-22", "content-type": "application/json"}

    def __call__(self, method: str, path: str, body=None):
        self.connection.request(method, path, json.dumps(body) if body is not None else None, self.headers)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (answer.status, content[:300])
        return json.loads(content) if content[:1] == b"{" else None


def filled(call: Client, name: str, count: int) -> str:
    store = call("POST", "/v1/memory_stores", {"name": name})["id"]
    for start in range(0, count, 500):
        changes = [{"op": "create", "path": f"/d{n // 100}/{n}.md", "content": text()} for n in range(start, min(start + 500, count))]
        call("POST", f"/v1/memory_stores/{store}/changesets", {"changes": changes})
    return store


def ms(work) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[int(len(values) * part)]


def question() -> str:
    return "+".join(random.sample(WORDS[:8_000], random.randint(2, 4)))


def warm(call: Client, store: str, count: int = 1_000) -> tuple[float, float]:
    """p50 and p99 above the p50 of a hello, interleaved."""
    route, hello, asked = f"/v1/memory_stores/{store}/memories/search?query=", [], []
    for _ in range(count):
        hello.append(ms(lambda: call("GET", "/healthz")))
        asked.append(ms(lambda: call("GET", route + question())))
    base = statistics.median(hello)
    return percentile(asked, 0.5) - base, percentile(asked, 0.99) - base


def creates(server: Server, store: str, mark: str, threads: int = 16, each: int = 150) -> float:
    def work(n: int) -> None:
        call = Client(server)
        for i in range(each):
            call("POST", f"/v1/memory_stores/{store}/memories", {"path": f"/{mark}/{n}/{i}.md", "content": text(60)})

    began = time.perf_counter()
    running = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    [thread.start() for thread in running]
    [thread.join() for thread in running]
    return threads * each / (time.perf_counter() - began)


def streams(server: Server, call: Client, readers: int) -> tuple[float, float, float]:
    """Memory that the readers add, and from the answered write to the first reader, p50 and p99."""
    store = call("POST", "/v1/memory_stores", {"name": "feed"})["id"]
    before = server.rss_mb()
    sockets = []
    head = f"GET /v1/memory_stores/{store}/changes?after=0 HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\nx-api-key: {server.key}\r\nanthropic-beta: agent-memory-2026-07-22\r\n\r\n"
    for _ in range(readers):
        reader = socket.create_connection(("127.0.0.1", server.port))
        reader.sendall(head.encode())
        sockets.append(reader)
    first = sockets[0].makefile("rb")
    for line in first:
        if line in (b"\r\n", b"\n"):
            break
    time.sleep(1)
    added, delays = server.rss_mb() - before, []
    for n in range(200):
        call("POST", f"/v1/memory_stores/{store}/memories", {"path": f"/{n}.md", "content": "x"})
        answered = time.perf_counter()
        for line in first:
            if line.startswith(b"data:") and f"/{n}.md".encode() in line:
                break
        delays.append((time.perf_counter() - answered) * 1e3)
    for reader in sockets:
        reader.close()
    return added, percentile(delays, 0.5), percentile(delays, 0.99)


def appends(server: Server, sessions: list[str], each: int = 150) -> float:
    """Events a second, one thread a session."""
    event = {"type": "user.message", "content": [{"type": "text", "text": text(60)}]}

    def work(session: str) -> None:
        call = agents_client(server)
        for _ in range(each):
            call("POST", f"/v1/sessions/{session}/events", {"events": [event]})

    began = time.perf_counter()
    running = [threading.Thread(target=work, args=(session,)) for session in sessions]
    [thread.start() for thread in running]
    [thread.join() for thread in running]
    return len(sessions) * each / (time.perf_counter() - began)


def agents_client(server: Server) -> Client:
    call = Client(server)
    call.headers["anthropic-beta"] = "managed-agents-2026-04-01"
    return call


def idle_streams(server: Server, sessions: list[str], seconds: float = 10) -> tuple[float, float]:
    """Memory that a stream a session adds, and the share of a processor that they take together."""
    before = server.rss_mb()
    sockets = []
    for session in sessions:
        reader = socket.create_connection(("127.0.0.1", server.port))
        head = f"GET /v1/sessions/{session}/events/stream HTTP/1.1\r\nhost: x\r\nx-api-key: {server.key}\r\nanthropic-beta: managed-agents-2026-04-01\r\n\r\n"
        reader.sendall(head.encode())
        sockets.append(reader)
    time.sleep(2)
    began = cpu_seconds(server)
    time.sleep(seconds)
    used = cpu_seconds(server) - began
    added = server.rss_mb() - before
    for reader in sockets:
        reader.close()
    return added, used / seconds


def cpu_seconds(server: Server) -> float:
    with open(f"/proc/{server.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    server = Server(sys.argv[1])
    try:
        call = Client(server)
        stores = {}
        for count in (1_000, 10_000):
            stores[count] = store = filled(call, f"n{count}", count)
            route = f"/v1/memory_stores/{store}/memories/search?query={question()}"
            first = {}
            cold = ms(lambda: first.update(call("GET", route)))
            time.sleep(5)
            again = call("GET", route)
            assert first == again, "the first answer is ranked as later ones"
            p50, p99 = warm(call, store)
            print(f"{count} memories: first query {cold:.0f} ms; warm above hello p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        alone = warm(call, stores[1_000])[0]
        for n in range(1_000):
            other = filled(call, f"other {n}", 20)
            call("GET", f"/v1/memory_stores/{other}/memories/search?query={question()}")
        beside = warm(call, stores[1_000])[0]
        print(f"beside 1,000 stores / alone, p50: {beside / alone:.2f}")
        rates = {"without": [], "with": []}
        stop = threading.Event()
        for turn in range(3):
            rates["without"].append(creates(server, filled(call, f"plain {turn}", 500), "w"))
            searched = filled(call, f"searched {turn}", 500)
            stop.clear()

            def search() -> None:
                own = Client(server)
                while not stop.is_set():
                    own("GET", f"/v1/memory_stores/{searched}/memories/search?query={question()}")
                    time.sleep(0.02)

            searching = threading.Thread(target=search)
            searching.start()
            rates["with"].append(creates(server, searched, "w"))
            stop.set()
            searching.join()
        ratio = statistics.median(rates["with"]) / statistics.median(rates["without"])
        print(f"creates with the index in use / without: {ratio:.2f}")
        agents = agents_client(server)
        agent = agents("POST", "/v1/agents", {"name": "bench", "model": "none"})["id"]
        place = agents("POST", "/v1/environments", {"name": "bench"})["id"]
        body = {"agent": agent, "environment_id": place}
        sessions = [agents("POST", "/v1/sessions", body)["id"] for _ in range(200)]
        events, writes = [], []
        for turn in range(3):
            events.append(appends(server, sessions[turn * 16 : turn * 16 + 16]))
            writes.append(creates(server, filled(call, f"beside events {turn}", 1), "w"))
        ratio = statistics.median(events) / statistics.median(writes)
        print(f"events appended to 16 sessions / memories created, 16 connections: {ratio:.2f}")
        added, share = idle_streams(server, sessions)
        print(f"200 idle sessions with streams: {added:.0f} MB, {share:.1%} of a processor")
        added, p50, p99 = streams(server, call, 500)
        print(f"500 SSE readers: {added:.0f} MB; answered write to the first reader p50 {p50:.2f} ms, p99 {p99:.2f} ms")
    finally:
        server.close()


if __name__ == "__main__":
    main()
