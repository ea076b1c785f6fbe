"""The official EnvironmentWorker, unmodified, and the queue that it speaks."""

from __future__ import annotations

import asyncio

import pytest

from kit.agents import attach, files, token_of, until, worker
from kit.expect import eventually, refusal


def stored(tree) -> dict[str, str]:
    return {memory.path: memory.content for memory in tree.client.beta.memory_stores.memories.list(tree.id, view="full")}


async def finished(working, sdk, session) -> None:
    """The session ends, and the worker with it, after its last sync."""
    await until(lambda: working.asked("GET", "/events/stream"))
    await asyncio.to_thread(sdk.beta.sessions.archive, session.id)
    await until(lambda: working.asked("POST", "/stop"), 60)


@pytest.mark.case("WK-01")
async def test_a_store_larger_than_a_page_arrives_whole(sdk, house, tree, tmp_path):
    want = {f"/d{n % 7}/e{n % 3}/{n:03}.md": f"{n} " * (n * 90) for n in range(120)}
    for path, content in want.items():
        sdk.beta.memory_stores.memories.create(tree.id, path=path, content=content)
    session = house.start(attach(tree.id))
    seen = {}

    def look(root):
        seen.update(files(root))
        assert (root / ".anthropic-memory-store").is_file()

    async with worker(house, tmp_path, look) as working:
        await finished(working, sdk, session)
    assert seen == want
    assert not [call for call in working.calls if call[2] >= 400]


async def test_edits_new_files_and_deletions_come_back_as_the_sessions(sdk, house, tree, tmp_path):
    for path in ("/edited", "/removed", "/kept"):
        sdk.beta.memory_stores.memories.create(tree.id, path=path, content="base")
    session = house.start(attach(tree.id))

    def act(root):
        (root / "edited").write_text("by the agent")
        (root / "removed").unlink()
        (root / "new" / "deep").mkdir(parents=True)
        (root / "new" / "deep" / "er.md").write_text("new")

    async with worker(house, tmp_path, act) as working:
        await finished(working, sdk, session)
    assert stored(tree) == {"/edited": "by the agent", "/kept": "base", "/new/deep/er.md": "new"}
    written = list(sdk.beta.memory_stores.memory_versions.list(tree.id, session_id=session.id))
    assert {version.operation for version in written} == {"created", "modified", "deleted"}


async def test_where_both_sides_changed_the_store_wins(sdk, house, tree, tmp_path):
    memory = sdk.beta.memory_stores.memories.create(tree.id, path="/a", content="base")
    session = house.start(attach(tree.id))

    def act(root):
        (root / "a").write_text("by the agent")
        sdk.beta.memory_stores.memories.update(memory.id, memory_store_id=tree.id, content="by a person")

    async with worker(house, tmp_path, act) as working:
        await finished(working, sdk, session)
    assert stored(tree) == {"/a": "by a person"}


async def test_nothing_is_written_where_access_is_read_only(sdk, house, tree, tmp_path):
    sdk.beta.memory_stores.memories.create(tree.id, path="/a", content="base")
    session = house.start(attach(tree.id, access="read_only"))

    def act(root):
        (root / "a").write_text("by the agent")
        (root / "b").write_text("new")

    async with worker(house, tmp_path, act) as working:
        await finished(working, sdk, session)
    assert stored(tree) == {"/a": "base"}
    assert not [path for method, path, _ in working.calls if method != "GET" and "/memories" in path]


@pytest.mark.case("WK-02")
async def test_what_cannot_be_stored_is_refused_and_the_rest_goes_on(sdk, house, tree, tmp_path):
    session = house.start(attach(tree.id))

    def act(root):
        (root / "big.txt").write_text("x" * 102_401)
        (root / "ok.txt").write_text("fine")

    async with worker(house, tmp_path, act) as working:
        await finished(working, sdk, session)
    assert stored(tree) == {"/ok.txt": "fine"}
    refused = [call for call in working.calls if call[0] == "POST" and call[2] >= 400 and "/memories" in call[1]]
    assert [status for _, _, status in refused] == [400]


@pytest.mark.case("WK-06")
async def test_a_last_flush_of_many_files_is_refused_nothing(sdk, house, tree, tmp_path):
    session = house.start(attach(tree.id))

    def act(root):
        for n in range(2_000):
            (root / f"{n:04}.md").write_text(f"memory {n}")

    async with worker(house, tmp_path, act) as working:
        await finished(working, sdk, session)
    assert len(stored(tree)) == 2_000
    assert not [call for call in working.calls if call[2] == 429 or call[2] >= 500]


# -- the queue


@pytest.mark.case("WK-07")
def test_leases_are_told_apart(house):
    session = house.start()
    item = house.queue.poll(house.environment.id, block_ms=900)
    house.queue.ack(item.id, environment_id=house.environment.id)
    first = house.beat(item, "NO_HEARTBEAT").last_heartbeat
    second = house.beat(item, first)
    assert second.lease_extended and second.last_heartbeat != first
    for stale in (first, "NO_HEARTBEAT", "x"):
        with refusal(412, "invalid_request_error") as caught:
            house.beat(item, stale)
        details = caught.value.body["error"]["details"]
        assert details["error_code"] == "heartbeat_precondition_failed"
        assert details["current_state"]["last_heartbeat"] == second.last_heartbeat
    assert item.data.id == session.id


def test_a_worker_that_vanishes_loses_its_lease_and_the_next_one_goes_on(sdk, house, tree):
    session = house.start(attach(tree.id))
    item = house.queue.poll(house.environment.id, block_ms=900)
    house.queue.ack(item.id, environment_id=house.environment.id)
    lost = house.beat(item, "NO_HEARTBEAT", desired_ttl_seconds=1).last_heartbeat
    again = eventually(lambda: house.queue.poll(house.environment.id, block_ms=500), seconds=20)
    assert again.id == item.id and token_of(again) != token_of(item)
    with refusal(412, "invalid_request_error"):
        house.beat(item, lost)
    house.queue.ack(again.id, environment_id=house.environment.id)
    assert house.beat(again, "NO_HEARTBEAT").state == "active"
    # Where the session is over meanwhile, nobody else gets it.
    house.queue.heartbeat(
        again.id,
        environment_id=house.environment.id,
        expected_last_heartbeat=sdk.beta.environments.work.retrieve(
            again.id, environment_id=house.environment.id
        ).latest_heartbeat_at,
        desired_ttl_seconds=1,
    )
    sdk.beta.sessions.archive(session.id)

    def state():
        return sdk.beta.environments.work.retrieve(item.id, environment_id=house.environment.id).state

    assert eventually(lambda: state() == "stopped", seconds=20)
    assert house.queue.poll(house.environment.id) is None


def test_one_item_at_a_time_however_much_is_said(sdk, house):
    session = house.start()
    item = house.queue.poll(house.environment.id, block_ms=900)
    house.queue.ack(item.id, environment_id=house.environment.id)
    for n in range(5):
        sdk.beta.sessions.events.send(
            session.id, events=[{"type": "user.message", "content": [{"type": "text", "text": str(n)}]}]
        )
    assert house.queue.poll(house.environment.id) is None
    house.queue.stop(item.id, environment_id=house.environment.id, force=True)
    sdk.beta.sessions.events.send(session.id, events=[{"type": "user.interrupt"}])
    assert house.queue.poll(house.environment.id, block_ms=900).id != item.id


def test_two_workers_never_get_one_item(house):
    from kit.expect import together

    ids = {house.start().id for _ in range(6)}
    polled = together(*[lambda: house.queue.poll(house.environment.id, block_ms=900) for _ in range(6)])
    assert {item.data.id for item in polled} == ids
