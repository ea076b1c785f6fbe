"""The memory tools as MCP clients see them: the official Python client over both transports, and raw lines."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import AsyncIterator

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from kit.server import STELE_BIN, Server, clean_env

DOORS = ["stdio", "http"]
READING = ["list_memories", "search_memories", "read_memory"]
WRITING = ["write_memory", "edit_memory", "rename_memory", "delete_memory", "memory_history"]


def text_of(result) -> str:
    return result.content[0].text


def env_of(server: Server, key: str) -> dict[str, str]:
    return clean_env(server.home, {"STELE_URL": server.url, "STELE_API_KEY": key})


def flags(session: str | None = None, agents: list[str] = [], stores: list[str] = []) -> list[tuple[str, str]]:
    pairs = [("session", session)] if session else []
    return pairs + [("agent", agent) for agent in agents] + [("store", store) for store in stores]


@contextlib.asynccontextmanager
async def tools(door: str, server: Server, key: str | None = None, *, mode: str = "auto", **scope) -> AsyncIterator[Client]:
    """The official client at one of the two doors, on a session's stores, an agent's, or those named."""
    key = key or server.admin_key
    if door == "stdio":
        args = ["mcp", *(word for name, value in flags(**scope) for word in (f"--{name}", value))]
        with open(server.home / "mcp.log", "a") as log:
            params = StdioServerParameters(command=str(STELE_BIN), args=args, env=env_of(server, key))
            async with Client(stdio_client(params, errlog=log), mode=mode) as client:
                yield client
        return
    url = httpx2.URL(server.url + "/mcp", params=flags(**scope))
    headers = {"authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(str(url), http_client=http), mode=mode) as client,
    ):
        yield client


class Lines:
    """`stele mcp` by its lines, for what a client would not send. What it says is read while it runs."""

    def __init__(self, server: Server, *args: str, env: dict[str, str] | None = None, key: str | None = None) -> None:
        self.process = subprocess.Popen(
            [STELE_BIN, "mcp", *args],
            env=env_of(server, key or server.admin_key) | (env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.stderr = b""
        self.readers = [threading.Thread(target=self._read), threading.Thread(target=self._listen)]
        for reader in self.readers:
            reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)

    def _listen(self) -> None:
        self.stderr = self.process.stderr.read()

    def send(self, *messages: dict | bytes) -> None:
        lines = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def receive(self, count: int) -> list[dict]:
        """So many messages, each a JSON-RPC one."""
        messages = [json.loads(self.lines.get(timeout=30)) for _ in range(count)]
        for message in messages:
            assert message["jsonrpc"] == "2.0" and ("result" in message) != ("error" in message), message
        return messages

    def end(self, seconds: float = 2) -> int:
        """Close its input; the exit status, within the time that it has."""
        self.process.stdin.close()
        try:
            status = self.process.wait(seconds)
        finally:
            self.process.kill()
            for reader in self.readers:
                reader.join()
            self.process.stdout.close()
            self.process.stderr.close()
        return status


def request(number: int | str, method: str, **params) -> dict:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number: int | str, name: str, **arguments) -> dict:
    return request(number, "tools/call", name=name, arguments=arguments)


HELLO = request(
    "hello", "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "lines", "version": "1"}
)
