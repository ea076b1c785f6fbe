"""kill -9 under load: no acknowledged change is lost, and no change is half there."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import sqlite3
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from kit.tree import Tree, sha
from kit.wire import Answer, Wire

ROUNDS = int(os.environ.get("STELE_KILL_ROUNDS", "15"))
WRITERS = 16


@dataclass
class Change:
    kind: str
    memory_id: str | None = None
    path: str | None = None
    content: str | None = None

    def send(self, call: Wire, memories: str) -> Answer:
        target = f"{memories}/{self.memory_id}" if self.memory_id else memories
        if self.kind == "delete":
            return call("DELETE", target)
        body = {"path": self.path, "content": self.content}
        return call("POST", target, json={name: value for name, value in body.items() if value is not None})


@dataclass
class Writer:
    """One client below a directory of its own. It notes what was acknowledged, and what was under way at the end."""

    wire: Wire
    memories: str
    number: int
    chance: random.Random
    live: dict[str, tuple[str, str]] = field(default_factory=dict)  # memory id: (path, content)
    versions: dict[str, str] = field(default_factory=dict)  # acknowledged version id: hash of its content
    deletes: int = 0
    under_way: Change | None = None
    refusal: Answer | None = None
    serial: int = 0

    @property
    def directory(self) -> str:
        return f"/w{self.number:02d}/"

    def run(self) -> None:
        with self.wire.kept_alive() as call:
            while self.refusal is None:
                self.under_way = self.choose()
                try:
                    answer = self.under_way.send(call, self.memories)
                except (OSError, http.client.HTTPException):
                    return
                if answer.status == 200:
                    self.note(self.under_way, answer.json())
                else:
                    self.refusal = answer
                self.under_way = None

    def choose(self) -> Change:
        """Every path and every content is new, so that a change is seen to have happened."""
        self.serial += 1
        path, content = (
            f"{self.directory}{self.serial}.md",
            f"{self.number}/{self.serial} " * self.chance.choice([1, 20, 500]),
        )
        kind = "create" if len(self.live) < 4 else self.chance.choice(["create", "update", "rename", "delete"])
        if kind == "create" and len(self.live) < 12:
            return Change("create", None, path, content)
        memory_id = self.chance.choice(sorted(self.live))
        if kind == "delete":
            return Change("delete", memory_id)
        return Change("rename", memory_id, path) if kind == "rename" else Change("update", memory_id, None, content)

    def note(self, change: Change, answer: dict) -> None:
        if change.kind == "delete":
            del self.live[change.memory_id]
            self.deletes += 1
            return
        _, old = self.live.get(answer["id"], (None, None))
        content = change.content if change.content is not None else old
        self.live[answer["id"]] = (answer["path"], content)
        self.versions[answer["memory_version_id"]] = sha(content)

    def states(self) -> list[dict[str, str]]:
        """What may be stored now: all that was acknowledged, without or with the change under way."""
        before, change = dict(self.live.values()), self.under_way
        if change is None:
            return [before]
        after = {path: content for memory_id, (path, content) in self.live.items() if memory_id != change.memory_id}
        if change.kind != "delete":
            old_path, old_content = self.live.get(change.memory_id, (None, None))
            after[change.path or old_path] = old_content if change.content is None else change.content
        return [before, after]


@dataclass
class Round:
    tree: Tree
    writers: list[Writer]
    versions: int = 0

    def verify(self) -> None:
        memories = self.tree.list(view="full", limit=20)
        versions = self.tree.versions(view="full", limit=20)
        happened = self.verify_memories(memories)
        self.verify_histories(memories, versions)
        acknowledged = sum(len(writer.versions) + writer.deletes for writer in self.writers)
        assert len(versions) == acknowledged + happened

    def verify_memories(self, memories) -> int:
        """How many of the changes under way turn out to have happened."""
        happened = 0
        for writer in self.writers:
            assert writer.refusal is None, writer.refusal
            stored = {m.path: m.content for m in memories if m.path.startswith(writer.directory)}
            assert stored in writer.states(), f"writer {writer.number}, under way: {writer.under_way}"
            happened += stored != dict(writer.live.values())
        return happened

    def verify_histories(self, memories, versions) -> None:
        known = {version.id: version.content_sha256 for version in versions}
        for writer in self.writers:
            assert writer.versions.items() <= known.items()
        operations: dict[str, list[str]] = {}
        for version in reversed(versions):
            operations.setdefault(version.memory_id, []).append(version.operation)
            if version.operation != "deleted":
                assert sha(version.content) == version.content_sha256
        live, newest = {m.id: m.memory_version_id for m in memories}, {v.memory_id: v.id for v in reversed(versions)}
        for memory_id, done in operations.items():
            counts = Counter(done)
            assert done[0] == "created" and counts["created"] == 1
            assert counts["deleted"] == (0 if memory_id in live else 1) and "deleted" not in done[:-1]
            assert live.get(memory_id, newest[memory_id]) == newest[memory_id]


def one_round(server, client, number: int) -> Round:
    tree, wire = Tree.planted(client), Wire(server.port, server.admin_key)
    chance = random.Random(number)
    writers = [Writer(wire, f"{tree.route}/memories", i, random.Random(f"{number}/{i}")) for i in range(WRITERS)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    time.sleep(chance.uniform(0.05, 0.7))
    server.kill()
    for thread in threads:
        thread.join()
    started = time.monotonic()
    server.start()
    assert time.monotonic() - started < 10
    return Round(tree, writers)


@pytest.mark.case("SQ-05")
def test_no_acknowledged_change_is_lost_by_kill_9(fresh_server, new_client):
    server = fresh_server()
    client = new_client(server)
    rounds = []
    for number in range(ROUNDS):
        rounds.append(one_round(server, client, number))
        rounds[-1].verify()
    for earlier in rounds:
        earlier.verify()
    assert sum(len(writer.versions) for r in rounds for writer in r.writers) > 10 * ROUNDS
    assert server.stop() == 0
    checked = server.check_database()
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with contextlib.closing(sqlite3.connect(server.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
