"""Streams of events: what they promise to who reads, who reads slowly, and who does not read at all."""

from __future__ import annotations

import http.client
import json
import threading
import time

import pytest

from kit.agents import answered, said
from kit.expect import eventually, together
from kit.wire import MANAGED, VERSION


class Stream:
    """One open stream of a session, read frame by frame."""

    def __init__(self, server, key: str, session_id: str, timeout: float = 30) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
        headers = {"authorization": f"Bearer {key}", "anthropic-beta": MANAGED, "anthropic-version": VERSION}
        self.connection.request("GET", f"/v1/sessions/{session_id}/events/stream", headers=headers | {"accept": "application/json"})
        self.response = self.connection.getresponse()

    def frame(self) -> tuple[str, dict] | None:
        """The next frame; None at the end."""
        name = data = None
        while line := self.response.readline().decode().rstrip("\n"):
            field, value = line.split(": ", 1)
            name, data = (value, data) if field == "event" else (name, value)
        return None if name is None else (name, json.loads(data))

    def events(self):
        while (frame := self.frame()) is not None:
            if frame[0] != "ping":
                yield frame[1]

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def follow(server):
    made: list[Stream] = []

    def open_(key, session_id, **options) -> Stream:
        made.append(Stream(server, key, session_id, **options))
        return made[-1]

    yield open_
    for stream in made:
        stream.close()


@pytest.mark.case("SW-01")
@pytest.mark.long
def test_a_quiet_stream_keeps_talking(server, house, follow):
    session = house.start()
    began = time.monotonic()
    stream = follow(server.admin_key, session.id)
    assert time.monotonic() - began < 1
    assert stream.response.status == 200 and stream.response.headers["content-type"] == "text/event-stream"
    assert stream.response.headers.get("x-accel-buffering") in (None, "no")
    last, pings = time.monotonic(), 0
    while time.monotonic() - began < 65:
        assert stream.frame()[0] == "ping"
        assert time.monotonic() - last < 20
        last, pings = time.monotonic(), pings + 1
    assert pings >= 3


@pytest.mark.case("SW-02")
@pytest.mark.long
def test_a_stream_has_no_birthday(sdk, server, house, follow):
    session = house.start()
    stream = follow(server.admin_key, session.id, timeout=60)
    end = time.monotonic() + 6 * 60
    while time.monotonic() < end:
        assert stream.frame()[0] == "ping"
    sdk.beta.sessions.events.send(session.id, events=[said("late")])
    assert next(stream.events())["content"][0]["text"] == "late"


def test_headers_come_at_once_and_every_frame_is_named(sdk, server, house, follow):
    session = house.start()
    sdk.beta.sessions.events.send(session.id, events=[said("before")])
    stream = follow(server.admin_key, session.id)
    assert stream.response.status == 200
    house.record(session.id, answered("after"))
    name, event = stream.frame()
    assert name == event["type"] == "agent.message" and event["content"][0]["text"] == "after"


def test_a_stream_ends_with_its_session(sdk, server, house, follow):
    session = house.start()
    stream = follow(server.admin_key, session.id)
    sdk.beta.sessions.archive(session.id)
    assert stream.frame()[0] == "session.status_terminated"
    sdk.beta.sessions.delete(session.id)
    assert [event["type"] for event in stream.events()] == ["session.deleted"]


def test_a_stream_ends_with_its_key(server, wire, house, new_key, follow):
    session = house.start()
    key = new_key(role="reader")
    stream = follow(key["key"], session.id)
    wire("DELETE", f"/stele/v1/api_keys/{key['api_key_id']}")
    began = time.monotonic()
    assert list(stream.events()) == []
    assert time.monotonic() - began < 6


def test_streams_end_when_the_server_does(fresh_server, new_client, tmp_path):
    from kit.agents import House
    from kit.wire import Wire

    own = fresh_server()
    house = House(new_client(own), Wire(own.port, own.admin_key))
    streams = [Stream(own, own.admin_key, house.start().id) for _ in range(20)]
    began = time.monotonic()
    assert own.stop() == 0
    assert time.monotonic() - began < 10
    assert all(list(stream.events()) == [] for stream in streams)
    house.close()


@pytest.mark.case("SW-03")
def test_a_slow_reader_does_not_harm_others(server, house, follow):
    session = house.start()
    slow, quick = follow(server.admin_key, session.id), follow(server.admin_key, session.id)
    got: list[int] = []
    reading = threading.Thread(target=lambda: got.extend(read(quick, 20_000)))
    reading.start()
    before = memory_kib(server)
    for start in range(0, 20_000, 500):
        events = [answered(f"{n} " + "x" * 2_000) for n in range(start, start + 500)]
        began = time.monotonic()
        house.record(session.id, *events)
        assert time.monotonic() - began < 5
    reading.join(60)
    assert got == list(range(20_000))
    assert memory_kib(server) - before < 64 * 1024
    # What the slow one gets, late as it comes, has no gap.
    some = read(slow, 100)
    assert some == list(range(100))


def read(stream: Stream, count: int) -> list[int]:
    numbers = []
    for event in stream.events():
        numbers.append(int(event["content"][0]["text"].split()[0]))
        if len(numbers) == count:
            break
    return numbers


def memory_kib(server) -> int:
    status = open(f"/proc/{server.process.pid}/status").read()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def test_ten_thousand_events_at_once_are_all_there_in_the_order_answered(sdk, house):
    session = house.start()

    def send(worker: int):
        sent = []
        for batch in range(10):
            events = [answered(f"{worker}.{batch}.{n}") for n in range(100)]
            sent += [event.id for event in house.record(session.id, *events).data]
        return sent

    answered_ids = together(*[lambda worker=worker: send(worker) for worker in range(10)])
    listed = [event.id for event in sdk.beta.sessions.events.list(session.id, limit=1000)]
    assert len(listed) == 10_000 and listed == sorted(listed)
    for ids in answered_ids:
        mine = set(ids)
        assert [one for one in listed if one in mine] == ids


def test_two_hundred_idle_streams_cost_next_to_nothing(fresh_server, new_client):
    from kit.agents import House
    from kit.wire import Wire

    own = fresh_server()
    house = House(new_client(own), Wire(own.port, own.admin_key))
    sessions = [house.start().id for _ in range(200)]
    before = memory_kib(own)
    streams = [Stream(own, own.admin_key, session) for session in sessions]
    assert memory_kib(own) - before < 100 * 1024
    assert eventually(lambda: all(stream.response.status == 200 for stream in streams))
    for stream in streams:
        stream.close()
    house.close()
