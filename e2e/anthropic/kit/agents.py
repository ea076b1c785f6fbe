"""Agents, environments and sessions for a test, and the official worker on a directory of the test's own."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.environments import EnvironmentWorker

from kit.wire import MANAGED, Wire

INGEST = "stele-ingest-2026-12-01"
MOUNT = "/mnt/memory/"


def said(text: str) -> dict:
    return {"type": "user.message", "content": [{"type": "text", "text": text}]}


def answered(text: str) -> dict:
    return {"type": "agent.message", "content": [{"type": "text", "text": text}]}


def attach(store_id: str, **fields) -> dict:
    return {"type": "memory_store", "memory_store_id": store_id} | fields


IDLE = {"type": "session.status_idle", "stop_reason": {"type": "end_turn"}}


class House:
    """One agent in one self-hosted environment, with a key for its workers."""

    def __init__(self, sdk: Anthropic, wire: Wire) -> None:
        self.sdk, self.wire = sdk, wire
        self.agent = sdk.beta.agents.create(name="e2e", model="m")
        self.environment = sdk.beta.environments.create(name="e2e", config={"type": "self_hosted"})
        made = wire("POST", f"/v1/environments/{self.environment.id}/keys", json={}, beta=MANAGED).ok()
        self.key = made["key"]
        self.workers = Anthropic(auth_token=self.key, base_url=sdk.base_url, max_retries=0, timeout=60)

    def close(self) -> None:
        self.workers.close()

    def start(self, *resources: dict, **fields):
        fields.setdefault("agent", self.agent.id)
        return self.sdk.beta.sessions.create(environment_id=self.environment.id, resources=list(resources), **fields)

    @property
    def queue(self):
        return self.workers.beta.environments.work

    def claim(self, session_id: str) -> tuple[object, str]:
        """The session's item, acknowledged and claimed, and the token that came with it."""
        while True:
            item = self.queue.poll(self.environment.id, block_ms=900)
            assert item is not None, f"no work for {session_id}"
            self.queue.ack(item.id, environment_id=self.environment.id)
            if item.data.id == session_id:
                break
            self.queue.stop(item.id, environment_id=self.environment.id, force=True)
        self.beat(item, "NO_HEARTBEAT")
        return item, token_of(item)

    def beat(self, item, last: str, **fields):
        return self.queue.heartbeat(item.id, environment_id=self.environment.id, expected_last_heartbeat=last, **fields)

    def record(self, session_id: str, *events: dict):
        return self.sdk.beta.sessions.events.send(session_id, events=list(events), betas=[INGEST])


def token_of(item) -> str:
    payload = base64.urlsafe_b64decode(item.secret + "=" * (-len(item.secret) % 4))
    return json.loads(payload)["sessions_token"]


class Moved(httpx2.AsyncBaseTransport):
    """The real network, but that sessions are mounted below a directory of the test. Keeps every status."""

    def __init__(self, root: Path) -> None:
        self.real, self.root = httpx2.AsyncHTTPTransport(), root
        self.calls: list[tuple[str, str, int]] = []

    async def handle_async_request(self, request):
        answer = await self.real.handle_async_request(request)
        path = request.url.path
        self.calls.append((request.method, path, answer.status_code))
        if request.method != "GET" or not path.startswith("/v1/sessions/") or path.count("/") != 3:
            return answer
        body = await answer.aread()
        await answer.aclose()
        moved = body.replace(MOUNT.encode(), f"{self.root}/".encode())
        kind = answer.headers.get("content-type", "application/json")
        return httpx2.Response(answer.status_code, headers={"content-type": kind}, content=moved)

    async def aclose(self) -> None:
        await self.real.aclose()


class Working:
    """A worker that runs; what it was given and what it asked."""

    def __init__(self, transport: Moved) -> None:
        self.transport = transport
        self.root: Path | None = None

    @property
    def calls(self) -> list[tuple[str, str, int]]:
        return self.transport.calls

    def asked(self, method: str, part: str) -> list[int]:
        return [status for m, path, status in self.calls if m == method and part in path]


@contextlib.asynccontextmanager
async def worker(house: House, home: Path, act) -> AsyncIterator[Working]:
    """The official worker, unmodified; `act(root)` is called with each session's first mount once it stands."""
    (home / "work").mkdir(parents=True)
    transport = Moved(home / "mnt")
    working = Working(transport)

    def tools(context):
        working.root = context.allowed_roots[0] if context.allowed_roots else None
        act(working.root)
        return []

    async with httpx2.AsyncClient(transport=transport, timeout=60) as http:
        client = AsyncAnthropic(auth_token=house.key, base_url=str(house.sdk.base_url), http_client=http)
        runs = EnvironmentWorker(
            client,
            environment_id=house.environment.id,
            environment_key=house.key,
            tools=tools,
            workdir=home / "work",
            max_idle=1.0,
        )
        task = asyncio.create_task(runs.run())
        try:
            yield working
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def until(check, seconds: float = 30.0):
    """Waits for `check` to give something true."""
    end = asyncio.get_running_loop().time() + seconds
    while not (value := check()):
        assert asyncio.get_running_loop().time() < end, "it did not come true"
        await asyncio.sleep(0.05)
    return value


def files(root: Path) -> dict[str, str]:
    """What lies below a mount, beside the worker's marker."""
    marker = ".anthropic-memory-store"
    found = (path for path in root.rglob("*") if path.is_file() and path.name != marker)
    return {"/" + path.relative_to(root).as_posix(): path.read_text() for path in found}
