"""Automations, their runs and schedules: spec/recursion.md 11. What clocks do to them is tested in core and store-suite."""

import uuid

import pytest

from api import Api, invalid, nowhere, refused
from kit.expect import eventually
from test_sessions import key


@pytest.fixture(scope="module")
def agent(api):
    return api.ok("POST", "/agents", {"name": "Automated", "model": "m/x", "system": "Run."})


@pytest.fixture(scope="module")
def body(api, agent):
    """A definition without stores and triggers."""
    environment = api.ok("POST", "/environments", {"name": "here", "provider": "docker"})
    return {
        "displayName": "Nightly",
        "agentId": agent["agent_id"],
        "agentVersionId": agent["latest_agent_version_id"],
        "environmentId": environment["environment_id"],
        "initialPrompt": {"type": "literal", "text": "Begin."},
        "runDefaults": {"metadata": None},
        "triggers": [],
    }


def schedule(cron: str = "0 3 * * *", zone: str = "Europe/Berlin", **fields) -> dict:
    trigger = {"type": "schedule", "triggerId": str(uuid.uuid4()), "enabled": True}
    return trigger | {"schedule": {"cron": cron, "timezone": zone} | fields}


def with_stores(body: dict, *stores: dict) -> dict:
    return body | {"runDefaults": {"metadata": None, "memoryStores": list(stores)}}


def made(api: Api, body: dict) -> tuple[str, str]:
    """The route of a new automation, and its ETag."""
    answer = api("POST", "/automations", body, **key())
    assert answer.status == 201, answer.text
    assert answer.headers["location"].endswith(answer.json()["automationId"])
    return f"/automations/{answer.json()['automationId']}", answer.headers["etag"]


def when(etag: str) -> dict:
    return {"headers": [("if-match", etag)]}


def test_what_is_sent_is_what_is_shown(api, body, shelf):
    store = {"memoryStoreId": shelf.id, "access": "read_write", "instructions": "Look here first."}
    sent = with_stores(body, store) | {"triggers": [schedule(catchupWindowSeconds=60, overlapPolicy="buffer_one")]}
    route, etag = made(api, sent)
    answer = api("GET", route)
    shown = answer.json()
    assert {k: shown[k] for k in sent} == sent and answer.headers["etag"] == etag == '"1"'
    assert (shown["status"], shown["revision"]) == ("paused", 1)
    assert api("GET", route, headers=[("if-none-match", etag)]).status == 304


def test_a_change_needs_the_state_that_it_changes(api, body):
    route, etag = made(api, body)
    for method, path, sent in (("PUT", route, body), ("POST", route + "/pause", None), ("POST", route + "/resume", None), ("DELETE", route, None)):
        refused(api(method, path, sent), 428, "precondition_required", "If-Match")
        refused(api(method, path, sent, **when('"7"')), 412, "precondition_failed", "If-Match")
    answer = api("PUT", route, body | {"displayName": "Weekly"}, **when(etag))
    assert (answer.json()["displayName"], answer.headers["etag"]) == ("Weekly", '"2"')
    refused(api("PUT", route, body, **when(etag)), 412, "precondition_failed", "If-Match")
    assert api("DELETE", route, **when('"2"')).status == 204
    for method, sent in (("GET", None), ("PUT", body), ("DELETE", None)):
        refused(api(method, route, sent, **when('"2"')), 404, "not_found")


def test_bodies_are_closed_and_bounded(api, body, shelf):
    def trigger(**fields):
        return body | {"triggers": [schedule(**fields)]}

    twice = schedule()
    store = {"memoryStoreId": shelf.id, "access": "read_only"}
    for bad, field in (
        (body | {"color": "red"}, "color"),
        (body | {"displayName": ""}, "displayName"),
        (body | {"displayName": "x" * 257}, "displayName"),
        (body | {"initialPrompt": {"type": "literal", "text": "x" * 65_537}}, "initialPrompt.text"),
        (body | {"initialPrompt": {"type": "template", "text": "x"}}, "initialPrompt.type"),
        (body | {"agentId": "agent_01"}, "agentId"),
        (body | {"runDefaults": {"color": 1}}, "runDefaults.color"),
        (body | {"runDefaults": {"metadata": {"a": 5}}}, "runDefaults.metadata.a"),
        (body | {"triggers": None}, "triggers"),
        (body | {"triggers": [schedule() for _ in range(21)]}, "triggers"),
        (body | {"triggers": [twice, twice]}, "triggers[1].triggerId"),
        (body | {"triggers": [schedule() | {"type": "webhook"}]}, "triggers[0].type"),
        (trigger(cron="0 3 * *"), "triggers[0].schedule.cron"),
        (trigger(cron="0 0 31 2 *"), "triggers[0].schedule.cron"),
        (trigger(zone="Mars/Olympus"), "triggers[0].schedule.timezone"),
        (trigger(jitterSeconds=541), "triggers[0].schedule.jitterSeconds"),
        (trigger(catchupWindowSeconds=9), "triggers[0].schedule.catchupWindowSeconds"),
        (trigger(overlapPolicy="queue"), "triggers[0].schedule.overlapPolicy"),
        (trigger(startAt="2026-02-01T00:00:00Z", endAt="2026-01-01T00:00:00Z"), "triggers[0].schedule.endAt"),
        (trigger(every="day"), "triggers[0].schedule.every"),
        (with_stores(body, *[store] * 8), "runDefaults.memoryStores"),
        (with_stores(body, store, store), "runDefaults.memoryStores"),
        (with_stores(body, store | {"access": "all"}), "runDefaults.memoryStores[0].access"),
        (with_stores(body, store | {"instructions": "i" * 4097}), "runDefaults.memoryStores[0].instructions"),
    ):
        invalid(api("POST", "/automations", bad, **key()), field)
    assert api("POST", "/automations", body=b"{", headers=[("content-type", "application/json")]).json()["code"] == "invalid_request"
    invalid(api("POST", "/automations", body), "Idempotency-Key")


def test_what_it_names_must_be_usable(api, body, shelf, agent):
    other = api.ok("POST", "/agents", {"name": "Other", "model": "m/x", "system": "s"})
    foreign = api.ok("POST", "/memory_stores", {"name": "foreign", "agent_id": other["agent_id"]}, status=201)
    archived = api.ok("POST", "/memory_stores", {"name": "archived"}, status=201)
    api.ok("POST", f"/memory_stores/{archived['memory_store_id']}/archive", status=204)
    for bad, field in (
        (body | {"agentId": nowhere()}, "agentId"),
        (body | {"agentVersionId": other["latest_agent_version_id"]}, "agentVersionId"),
        (body | {"environmentId": nowhere()}, "environmentId"),
        *(
            (with_stores(body, {"memoryStoreId": shelf.id, "access": "read_only"}, {"memoryStoreId": store, "access": "read_only"}), "runDefaults.memoryStores[1].memoryStoreId")
            for store in (nowhere(), foreign["memory_store_id"], archived["memory_store_id"])
        ),
    ):
        details = refused(api("POST", "/automations", bad, **key()), 422, "semantic_validation_failed", field)["details"]
        assert details["code"] == ("automation_memory_unavailable" if "Stores" in field else "automation_reference_invalid")


def test_a_run_by_hand_starts_a_session_once(api, body, shelf):
    route, _ = made(api, with_stores(body, {"memoryStoreId": shelf.id, "access": "read_write"}))
    one = key()
    first, again = (api("POST", route + "/runs", {"payload": {"pr": 7}}, **one) for _ in range(2))
    assert (first.status, first.body, again.headers["idempotency-replayed"]) == (200, again.body, "true")
    run = first.json()
    assert (run["status"], run["triggerType"], run["eventContext"]) == ("created", "manual", {"payload": {"pr": 7}})
    assert first.headers["location"] == run["statusUrl"]
    session = api("GET", f"/sessions/{run['sessionId']}").json()
    learned, attached = session["config"]["memory_stores"]
    assert learned["learned"] and (attached["memory_store_id"], attached["access"]) == (shelf.id, "read_write")
    assert api("GET", f"/automation-runs/{run['automationRunId']}").json() == run
    rows = api("GET", "/automation-runs", query={"automationId": route.split("/")[2]}).json()
    assert (rows["total"], rows["nextCursor"]) == (1, None)
    (row,) = [a for a in api("GET", "/automations", query={"limit": 100}).json()["items"] if a["automationId"] == run["automationId"]]
    assert row["latestRun"]["automationRunId"] == run["automationRunId"]
    invalid(api("POST", route + "/runs", {"force": True}, **key()), "force")
    refused(api("POST", f"/automations/{nowhere()}/runs", {}, **key()), 404, "not_found")


def test_a_run_that_cannot_start_says_why(api, body):
    doomed = api.ok("POST", "/agents", {"name": "Doomed", "model": "m/x", "system": "s"})
    route, _ = made(api, body | {"agentId": doomed["agent_id"], "agentVersionId": doomed["latest_agent_version_id"]})
    api.ok("DELETE", f"/agents/{doomed['agent_id']}")
    run = api("POST", route + "/runs", {}, **key()).json()
    assert run["status"] == "failed" and "sessionId" not in run and run["error"]["message"]


def test_runs_are_narrowed_and_paged(api, body):
    route, _ = made(api, body)
    runs = [api("POST", route + "/runs", {}, **key()).json() for _ in range(3)]
    ids = [run["automationRunId"] for run in runs][::-1]
    of = {"automationId": runs[0]["automationId"]}

    def listed(**query) -> dict:
        return api("GET", "/automation-runs", query=of | query).json()

    page = listed(limit=2)
    rest = listed(limit=2, cursor=page["nextCursor"])
    assert [r["automationRunId"] for r in page["items"] + rest["items"]] == ids
    assert (page["total"], rest["nextCursor"]) == (3, None)
    assert listed(triggerType="schedule")["total"] == listed(status="failed")["total"] == 0
    assert listed(triggerType="manual", status="created", createdAtGte=runs[1]["createdAt"])["total"] == 2
    assert [r["automationRunId"] for r in listed(createdAtLt=runs[1]["createdAt"])["items"]] == ids[2:]
    for query, field in (({"limit": 0}, "limit"), ({"status": "x"}, "status"), ({"triggerType": "x"}, "triggerType"), ({"cursor": "x"}, "cursor"), ({"limit": 3, "cursor": page["nextCursor"]}, "cursor")):
        invalid(api("GET", "/automation-runs", query=of | query), field)


def test_a_schedule_counts_while_it_is_resumed(api, body):
    route, etag = made(api, body | {"triggers": [schedule(), schedule(cron="*/5 * * * *") | {"enabled": False}]})

    def stands() -> list[dict]:
        return api("GET", route + "/status").json()["triggers"]

    assert [t["nextRunAt"] for t in stands()] == [None, None]
    resumed = api("POST", route + "/resume", **when(etag))
    assert resumed.json()["status"] == "active"
    on, off = stands()
    assert on["nextRunAt"][11:16] in ("01:00", "02:00") and len(on["upcomingRuns"]) == 5 and not on["paused"]
    assert (off["nextRunAt"], off["paused"], off["upcomingRuns"]) == (None, True, [])
    again = api("POST", route + "/resume", **when(resumed.headers["etag"]))
    assert again.headers["etag"] == resumed.headers["etag"], "again changes nothing"
    paused = api("POST", route + "/pause", **when(resumed.headers["etag"]))
    assert paused.json()["status"] == "paused" and stands()[0]["nextRunAt"] is None


@pytest.mark.long
def test_an_occasion_comes_by_itself(api, body):
    trigger = schedule(cron="* * * * *", jitterSeconds=0)
    route, etag = made(api, body | {"triggers": [trigger]})
    api("POST", route + "/resume", **when(etag))
    of = {"automationId": route.split("/")[2], "triggerId": trigger["triggerId"]}
    runs = eventually(lambda: api("GET", "/automation-runs", query=of).json()["items"], 75)
    assert runs[0]["triggerType"] == "schedule" and runs[0]["occurrenceAt"].endswith(":00.000000Z")
    assert api("GET", f"/sessions/{runs[0]['sessionId']}").status == 200


@pytest.mark.parametrize("method, path, needs", [
    ("GET", "/agents", "read"), ("POST", "/agents", "create"), ("DELETE", "/agents/{}", "delete"),
    ("POST", "/agents/{}/versions", "update"), ("POST", "/environments", "create"), ("DELETE", "/environments/{}", "delete"),
    ("GET", "/sessions", "read"), ("POST", "/sessions", "create"), ("POST", "/sessions/{}/events", "update"),
    ("POST", "/sessions/{}/cancel", "update"), ("POST", "/sessions/{}/complete", "update"), ("DELETE", "/sessions/{}", "delete"),
    ("GET", "/automations/{}", "read"), ("POST", "/automations", "create"), ("PUT", "/automations/{}", "update"),
    ("POST", "/automations/{}/pause", "update"), ("POST", "/automations/{}/runs", "update"), ("DELETE", "/automations/{}", "delete"),
    ("GET", "/automation-runs", "read"), ("GET", "/models", "read"), ("GET", "/agent_memory", "read"), ("GET", "/reflections", "read"),
])
def test_roles_may_do_what_their_permissions_say(as_role, api, method, path, needs):
    may = {"reader": {"read"}, "contributor": {"read", "create", "update"}, "developer": {"read", "create", "update", "delete"}}
    for role, permissions in may.items():
        answer = as_role(role)(method, path.format(nowhere()), {} if method in ("POST", "PUT") else None)
        assert (answer.status == 403) == (needs not in permissions), (role, answer.text)
    refused(api(method, path.format(nowhere()), auth=None), 401, "unauthorized")


def test_another_workspace_sees_nothing_of_it(api, elsewhere, body, agent):
    route, etag = made(api, body)
    run = api("POST", route + "/runs", {}, **key()).json()
    for path in (route, route + "/status", f"/automation-runs/{run['automationRunId']}", f"/sessions/{run['sessionId']}", f"/agents/{agent['agent_id']}"):
        refused(elsewhere("GET", path), 404, "not_found")
    refused(elsewhere("DELETE", route, **when(etag)), 404, "not_found")
    assert elsewhere("GET", "/automations").json()["items"] == elsewhere("GET", "/automation-runs").json()["items"] == []
