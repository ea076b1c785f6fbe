#!/usr/bin/env python3
"""The memory tools of MCP beside the same over HTTP: `benches/mcp.py target/release/stele`.

Prints the time from the start of `stele mcp` to its first answer, and what `search_memories` costs above the HTTP
search, on standard input and at /mcp, asked in turns. benches/RESULTS.md has those of a run.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import quote

from search import WORDS, Client, Server, filled, ms, percentile

ROUNDS = 1_000
STARTS = 30
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Stdio:
    def __init__(self, binary: str, server: Server, store: str) -> None:
        env = os.environ | {"STELE_URL": f"http://127.0.0.1:{server.port}", "STELE_API_KEY": server.key}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([binary, "mcp", "--store", store], env=env, stdin=pipe, stdout=pipe)

    def __call__(self, method: str, **params) -> dict:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def start(binary: str, server: Server, store: str) -> None:
    stdio = Stdio(binary, server, store)
    stdio("initialize", **HELLO)
    stdio.close()


def main() -> None:
    binary = sys.argv[1]
    server = Server(binary)
    try:
        call = Client(server)
        store = filled(call, "mcp", 1_000)
        stdio = Stdio(binary, server, store)
        stdio("initialize", **HELLO)
        web = HTTPConnection("127.0.0.1", server.port)
        headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json", "accept": "application/json, text/event-stream"}

        def at_mcp(query: str) -> dict:
            params = {"name": "search_memories", "arguments": {"query": query}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            web.request("POST", f"/mcp?store={store}", body, headers)
            return json.loads(web.getresponse().read())["result"]

        doors = {
            "HTTP": lambda query: call("GET", f"/v1/memory_stores/{store}/memories/search?query={quote(query)}"),
            "stdio": lambda query: stdio("tools/call", name="search_memories", arguments={"query": query}),
            "/mcp": at_mcp,
        }
        took: dict[str, list[float]] = {name: [] for name in doors}
        for round_ in range(-50, ROUNDS):
            query = " ".join(random.sample(WORDS[:8_000], random.randint(2, 4)))
            for name, ask in doors.items():
                spent = ms(lambda ask=ask, query=query: ask(query))
                if round_ >= 0:
                    took[name].append(spent)
        stdio.close()
        for name, values in took.items():
            above = [percentile(values, part) - percentile(took["HTTP"], part) for part in (0.5, 0.99)]
            print(f"search, {name}: p50 {statistics.median(values):.2f} ms; above HTTP p50 {above[0]:.2f}, p99 {above[1]:.2f} ms")
        starts = [ms(lambda: start(binary, server, store)) for _ in range(STARTS)]
        print(f"start to first answer, with the end: p50 {statistics.median(starts):.1f} ms, most {max(starts):.1f} ms")
    finally:
        server.close()


if __name__ == "__main__":
    main()
