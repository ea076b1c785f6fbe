"""Agents, environments, sessions and their events: spec/recursion.md 10 and 18 X1, X2."""

import http.client
import json
import uuid

import pytest
from recursion_sdk.models.managed_agents_create_agent_request import ManagedAgentsCreateAgentRequest as Agent
from recursion_sdk.models.managed_agents_create_environment_request import (
    ManagedAgentsCreateEnvironmentRequest as Environment,
)
from recursion_sdk.models.managed_agents_session_event_send_request import (
    ManagedAgentsSessionEventSendRequest as Send,
)
from recursion_sdk.models.managed_agents_start_session_request import ManagedAgentsStartSessionRequest as Start

from api import Api, BASE, invalid, nowhere, refused
from kit.ids import public_id
from kit.wire import MANAGED


def key() -> dict:
    return {"headers": [("idempotency-key", uuid.uuid4().hex)]}


@pytest.fixture(scope="module")
def agent(api):
    return api.ok("POST", "/agents", {"name": "Runner", "model": "m/x", "system": "Run."})


@pytest.fixture
def session(api, agent):
    """The id of a new session with an opening message."""
    return start(api, agent, message="begin")


def start(api: Api, agent: dict, **fields) -> str:
    return api.ok("POST", "/sessions", {"agent_id": agent["agent_id"]} | fields, status=202, **key())["session_id"]


def test_a_tour_with_the_sdk(sdk):
    agent = sdk.create_agent(body=Agent(name="Tour", model="m/x", system="Be kind."))
    assert sdk.get_agent(agent.agent_id) == agent
    environment = sdk.create_environment(body=Environment(name="here", provider="runs"))
    assert sdk.get_environment(environment.environment_id) == environment
    body = Start(agent_id=agent.agent_id, environment_id=environment.environment_id, message="hello")
    begun = sdk.start_session(body=body, idempotency_key=uuid.uuid4().hex)
    accepted = sdk.send_session_events(begun.session_id, body=Send(message="and more"))
    assert (accepted.ok, accepted.events_accepted) == (True, 1)
    first, second = sdk.list_session_events(begun.session_id).events
    assert [first.content.blocks[0].text, second.content.blocks[0].text] == ["hello", "and more"]
    assert [t.session_id for t in sdk.list_session_threads(begun.session_id).threads] == [begun.session_id]
    seen = sdk.get_session(begun.session_id)
    assert (seen.status.value, seen.execution_state.value) == ("active", "queued")
    assert begun.session_id in {s.session_id for s in sdk.list_sessions(agent_id=agent.agent_id).sessions}
    assert sdk.cancel_session(begun.session_id).cancelled
    assert sdk.get_session(begun.session_id).status.value == "cancelled"
    assert sdk.delete_session(begun.session_id).deleted
    assert sdk.delete_environment(environment.environment_id).deleted
    assert sdk.delete_agent(agent.agent_id).deleted


def test_a_version_is_made_on_the_one_that_was_read(api):
    body = {"name": "Versions", "model": "m/x", "system": "one", "metadata": {"a": "1"}}
    made = api.ok("POST", "/agents", body)
    route = f"/agents/{made['agent_id']}/versions"
    base = {"base_agent_version_id": made["latest_agent_version_id"]}
    changed = api.ok("POST", route, body | base | {"system": "two", "metadata": {"b": "2"}}, status=201)
    assert (changed["system"], changed["metadata"]) == ("two", {"b": "2"}) and changed["latest_agent_version_id"] != made["latest_agent_version_id"]
    refused(api("POST", route, body | base | {"system": "three"}), 409, "revision_conflict", "base_agent_version_id")
    invalid(api("POST", route, body), "base_agent_version_id")
    assert [v["version_number"] for v in api.ok("GET", route)["agent_versions"]] == [2, 1]
    old = api.ok("GET", f"{route}/{made['latest_agent_version_id']}")
    assert (old["system"], old["version_number"], old["metadata"]) == ("one", 1, {"a": "1"})


@pytest.mark.parametrize("field", ["name", "model", "system"])
def test_an_agent_needs_what_it_needs(api, field):
    body = {"name": "n", "model": "m", "system": "s"} | {field: None}
    invalid(api("POST", "/agents", body), field)


def test_a_key_stands_for_one_request(api, agent):
    body, one = {"agent_id": agent["agent_id"], "message": "once"}, key()
    first, again = (api("POST", "/sessions", body, **one) for _ in range(2))
    assert (first.status, again.status, first.body) == (202, 202, again.body)
    assert first.headers["location"] == again.headers["location"] == first.json()["status_path"]
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    refused(api("POST", "/sessions", body | {"message": "twice"}, **one), 409, "idempotency_conflict", "Idempotency-Key")
    refused(api("POST", "/agents", {"name": "n", "model": "m", "system": "s"}, **one), 409, "idempotency_conflict", "Idempotency-Key")
    failed = key()
    refused(api("POST", "/sessions", {"agent_id": nowhere()}, **failed), 404, "not_found")
    assert api("POST", "/sessions", body, **failed).status == 202, "only successes are remembered"


def test_bad_starts(api, agent):
    here = {"agent_id": agent["agent_id"]}
    for body, field in (
        ({}, "agent_id"),
        ({"agent_id": "agent_01"}, "agent_id"),
        (here | {"environment_id": 5}, "environment_id"),
        (here | {"message": {}}, "message"),
        (here | {"metadata": {"a b": "x"}}, "metadata"),
        (here | {"metadata": {"a": ""}}, "metadata.a"),
        (here | {"metadata": {str(n): "x" for n in range(33)}}, "metadata"),
    ):
        invalid(api("POST", "/sessions", body, **key()), field)
    refused(api("POST", "/sessions", here | {"environment_id": nowhere()}, **key()), 404, "not_found")
    invalid(api("POST", "/sessions", here, headers=[("idempotency-key", "a")] * 2), "Idempotency-Key")


def test_a_transcript_is_told_from_outside(api, agent, session):
    sent = [
        {"type": "agent.message", "text": "I look."},
        {"type": "agent.tool_use", "id": "use-1", "name": "bash", "input": {"command": "ls"}},
        {"type": "agent.tool_result", "tool_use_id": "use-1", "content": "a.md", "is_error": False},
        {"type": "made.up", "text": "x"},
        {"type": "user.message", "text": ""},
        {"type": "system.message", "content": [{"type": "text", "text": "Careful."}], "actor": "system:mine"},
    ]
    assert api.ok("POST", f"/sessions/{session}/events", {"events": sent})["events_accepted"] == 4
    events = api.ok("GET", f"/sessions/{session}/events")["events"]
    assert [(e["event_type"], e.get("role")) for e in events] == [
        ("message", "user"),
        ("message", "assistant"),
        ("tool_invocation", "assistant"),
        ("tool_result", "tool"),
        ("message", "system"),
    ]
    assert (events[2]["tool_name"], events[2]["tool_use_id"]) == ("bash", "use-1") == (events[2]["tool_name"], events[3]["tool_use_id"])
    assert [e["actor"] for e in events] == ["human:api"] + [f"agent:{agent['agent_id']}"] * 3 + ["system:mine"]
    ids = [e["event_id"] for e in events]
    assert ids == sorted(ids) and {i[14] for i in ids} == {"7"}


def test_events_page_to_an_empty_token(api, session):
    api.ok("POST", f"/sessions/{session}/events", {"events": [{"type": "user.message", "text": str(n)} for n in range(4)]})
    read, token = [], None
    while token != "":
        query = {"limit": 2} | ({"after_event_id": token} if token else {})
        page = api("GET", f"/sessions/{session}/events", query=query).json()
        read += [e["content"]["blocks"][0]["text"] for e in page["events"]]
        token = page["next_page_token"]
    assert read == ["begin", "0", "1", "2", "3"]
    last = api.ok("GET", f"/sessions/{session}/events")["events"][-1]["event_id"]
    after = api("GET", f"/sessions/{session}/events", query={"after_event_id": last})
    assert after.json() == {"events": None, "next_page_token": ""}
    invalid(api("GET", f"/sessions/{session}/events", query={"after_event_id": nowhere()}), "after_event_id")


def test_bad_events_leave_nothing(api, session):
    good = {"type": "user.message", "text": "good"}
    for bad, field in (
        ({"type": "agent.tool_use", "input": {}}, "events[1].name"),
        ({"type": "agent.tool_result"}, "events[1].tool_use_id"),
        ({"type": "user.message", "content": 5}, "events[1].content"),
        ({"type": 5}, "events[1].type"),
        ("text", "events[1]"),
    ):
        invalid(api("POST", f"/sessions/{session}/events", {"events": [good, bad]}), field)
    invalid(api("POST", f"/sessions/{session}/events", {}), "events")
    invalid(api("POST", f"/sessions/{session}/events", {"message": ""}), "events")
    assert len(api.ok("GET", f"/sessions/{session}/events")["events"]) == 1


def test_a_session_ends_once_and_says_how(api, session):
    invalid(api("POST", f"/sessions/{session}/complete", {"status": "done"}), "status")
    invalid(api("POST", f"/sessions/{session}/complete", {"status": "completed", "failure": {"code": "x"}}), "failure")
    failure = {"code": "tests_failed", "message": "two tests fail"}
    ended = api("POST", f"/sessions/{session}/complete", {"status": "failed", "failure": failure}).json()
    assert (ended["status"], ended["execution_state"]) == ("failed", "completed")
    assert {k: ended["failure"][k] for k in failure} == failure
    refused(api("POST", f"/sessions/{session}/complete", {"status": "completed"}), 409, "conflict", "session_id")
    refused(api("POST", f"/sessions/{session}/events", {"message": "more"}), 409, "conflict", "session_id")
    assert api.ok("POST", f"/sessions/{session}/cancel") == {"cancelled": True}
    assert api("GET", f"/sessions/{session}").json()["status"] == "failed"


def test_lists_are_narrowed_and_paged(api, agent):
    own = api.ok("POST", "/agents", {"name": "Listed", "model": "m/x", "system": "s"})
    made = [start(api, own, metadata={"n": str(n), "even": str(n % 2 == 0)}, external_source_type="ci", external_source_id=str(n)) for n in range(5)]
    api("POST", f"/sessions/{made[0]}/complete", {"status": "completed"})

    def ids(**query) -> list[str]:
        answer = api("GET", "/sessions", query={"agent_id": own["agent_id"]} | query)
        assert answer.status == 200, answer.text
        return [s["session_id"] for s in answer.json()["sessions"]]

    recent = [made[0], *made[:0:-1]]
    assert ids() == recent, "the most recently updated first"
    assert ids(status="completed") == [made[0]] and ids(status="active,failed") == made[:0:-1]
    assert ids(metadata="even:True") == [made[0], made[4], made[2]] and ids(metadata_key="missing") == []
    assert ids(external_source_type="ci", external_source_id="3") == [made[3]]
    assert ids(kind="chat") == [] and ids(kind="chat,api_call") == recent and ids(status="awaiting_human") == []
    seen, token = [], {}
    while token is not None:
        page = api("GET", "/sessions", query={"agent_id": own["agent_id"], "limit": 2} | token).json()
        seen += [s["session_id"] for s in page["sessions"]]
        token = {"page_token": page["next_page_token"]} if "next_page_token" in page else None
    assert seen == recent
    token = api("GET", "/sessions", query={"agent_id": own["agent_id"], "limit": 2}).json()["next_page_token"]
    for other in ({"limit": 3}, {"limit": 2, "status": "active"}, {"limit": 2, "agent_id": agent["agent_id"]}):
        query = {"agent_id": own["agent_id"], "page_token": token} | other
        invalid(api("GET", "/sessions", query=query), "page_token")
    for query, field in (({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"status": "ended"}, "status"), ({"kind": "x"}, "kind"), ({"metadata": "x"}, "metadata"), ({"agent_id": "x"}, "agent_id")):
        invalid(api("GET", "/sessions", query=query), field)


def test_the_first_session_brings_the_learned_store(api, claude):
    own = api.ok("POST", "/agents", {"name": "Learner", "model": "m/x", "system": "s"})
    memory = f"/agents/{own['agent_id']}/memory"
    assert "memory_store_id" not in api.ok("GET", memory)
    first, second = start(api, own), start(api, own)
    store = api.ok("GET", memory)["memory_store_id"]
    listed = api.ok("GET", "/memory_stores", query={"agent_id": own["agent_id"], "origin": "reflection"})
    assert [s["memory_store_id"] for s in listed["memory_stores"]] == [store]
    assert listed["memory_stores"][0]["name"] == "Learner memory"
    for session in (first, second):
        (attached,) = api("GET", f"/sessions/{session}").json()["config"]["memory_stores"]
        assert (attached["memory_store_id"], attached["access"], attached["learned"]) == (store, "read_only", True)
    assert api("GET", f"/sessions/{first}?view=summary").json()["config"] == {}
    body = {"path": "/a.md", "summary": "s", "content": "x"}
    invalid(api("POST", f"/memory_stores/{store}/memories", body), "memory_store_id")
    assert api.ok("DELETE", f"/agents/{own['agent_id']}") == {"deleted": True}
    refused(api("GET", memory), 404, "not_found")
    assert api.ok("GET", f"/memory_stores/{store}")["memory_store_id"] == store
    refused(api("POST", "/sessions", {"agent_id": own["agent_id"]}, **key()), 404, "not_found")


def test_a_session_is_the_same_one_in_the_other_dialect(api, wire, session):
    other = public_id("sesn", uuid.UUID(session))
    seen = wire("GET", f"/v1/sessions/{other}", beta=MANAGED).ok()
    assert seen["id"] == other and seen["status"] == "idle"
    events = wire("GET", f"/v1/sessions/{other}/events", beta=MANAGED).ok()["data"]
    assert [e["type"] for e in events] == ["user.message"]


def test_a_stream_goes_on_where_it_was_left_and_ends_with_the_session(server, api, session):
    api.ok("POST", f"/sessions/{session}/events", {"events": [{"type": "agent.message", "text": str(n)} for n in range(3)]})
    events = api.ok("GET", f"/sessions/{session}/events")["events"]
    api("POST", f"/sessions/{session}/complete", {"status": "completed"})

    def stream(query: str = "", **headers) -> list[str]:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", f"{BASE}/sessions/{session}/events/stream{query}", headers={"authorization": f"Bearer {server.admin_key}"} | headers)
        answer = connection.getresponse()
        assert answer.headers["content-type"] == "text/event-stream"
        frames = answer.read().decode().split("\n\n")
        connection.close()
        data = [json.loads(line[6:]) for frame in frames for line in frame.split("\n") if line.startswith("data: ")]
        ids = [line[4:] for frame in frames for line in frame.split("\n") if line.startswith("id: ")]
        assert [e["event_id"] for e in data] == ids
        return ids

    whole = stream()
    assert whole[:4] == [e["event_id"] for e in events] and len(whole) == 5
    assert stream(f"?after_event_id={whole[1]}") == whole[2:]
    assert stream(**{"last-event-id": whole[2]}) == whole[3:]
    assert stream(f"?after_event_id={whole[0]}", **{"last-event-id": whole[2]}) == whole[1:]
    assert stream(f"?after_event_id={whole[-1]}") == []


def test_the_model_that_memory_is_learned_with(api):
    own = api.ok("POST", "/agents", {"name": "Modelled", "model": "m/x", "system": "s"})
    route = f"/agents/{own['agent_id']}"
    assert api.ok("PATCH", f"{route}/learning", {"memory_model_ref": "other/large"}) == {"memory_model_ref": "other/large"}
    assert api.ok("PATCH", f"{route}/learning", {}) == {"memory_model_ref": "other/large"}
    assert api.ok("GET", f"{route}/memory")["effective_model"] == "other/large"
    assert api.ok("GET", route)["model"] == "m/x" and len(api.ok("GET", f"{route}/versions")["agent_versions"]) == 1
    for bad in ("large", "", "/", "other/", "/large", "a b/c", 7):
        invalid(api("PATCH", f"{route}/learning", {"memory_model_ref": bad}), "memory_model_ref")
    assert api.ok("PATCH", f"{route}/learning", {"memory_model_ref": None}) == {}
    assert api.ok("GET", f"{route}/memory")["effective_model"] == "m/x"


def test_without_a_provider_there_are_no_models(api):
    refused(api("GET", "/models"), 503, "model_gateway_unconfigured")
