"""Lost answers, repeated requests, and what tells a client not to repeat."""

import anthropic
import httpx2
import pytest

from kit.expect import bad_request, refusal
from kit.proxy import CuttingProxy
from kit.tree import Tree, if_text, sha
from kit.wire import MANAGED, MEMORY


@pytest.fixture
def cut_first(server, new_client):
    """A client with the SDK's own retry policy, behind a network that loses the first answer."""
    with CuttingProxy(server.port) as proxy:
        yield new_client(server, base_url=proxy.url, max_retries=2), proxy


@pytest.mark.case("RT-01")
def test_a_create_whose_answer_was_lost_ends_in_a_conflict_that_names_it(tree, cut_first):
    client, proxy = cut_first
    with refusal(409, "memory_path_conflict_error") as caught:
        Tree(client, tree).put("/a.md", "A\n")
    (memory,) = tree.list()
    error = caught.value.body["error"]
    assert (error["conflicting_path"], error["conflicting_memory_id"]) == ("/a.md", memory.id)
    assert tree.texts() == {"/a.md": "A\n"} and tree.operations() == ["created"]
    assert proxy.accepted == 2


@pytest.mark.case("RT-02")
def test_a_conditional_update_whose_answer_was_lost_succeeds(tree, cut_first):
    client, proxy = cut_first
    memory = tree.put("/a.md", "A\n")
    changed = Tree(client, tree).edit(memory.id, content="B\n", precondition=if_text("A\n"))
    assert changed.content_sha256 == sha("B\n")
    assert tree.operations(memory.id) == ["created", "modified"]
    assert proxy.accepted == 2


def test_the_sdk_sends_a_refused_write_once(server, new_client, tree):
    sent = []
    http = httpx2.Client(event_hooks={"request": [sent.append]})
    impatient = Tree(new_client(server, http_client=http, max_retries=2), tree)
    memory = tree.put("/a.md", "A\n")
    for refused_write in (
        lambda: impatient.put("/a.md"),
        lambda: impatient.edit(memory.id, content="B\n", precondition=if_text("C\n")),
        lambda: impatient.drop(memory.id, expected_content_sha256=sha("C\n")),
    ):
        sent.clear()
        with pytest.raises(anthropic.ConflictError):
            refused_write()
        assert len(sent) == 1


def test_every_conflict_says_that_repeating_is_useless(wire, tree):
    first, second = tree.put("/a.md", "A\n"), tree.put("/d/b.md", "B\n")
    path_conflicts = [
        wire("POST", f"{tree.route}/memories", json={"path": path, "content": "x"})
        for path in ("/a.md", "/a.md/x", "/d")
    ] + [wire("POST", f"{tree.route}/memories/{second.id}", json={"path": "/a.md"})]
    stale = if_text("C\n")
    precondition_conflicts = [
        wire("POST", f"{tree.route}/memories/{first.id}", json={"content": "x", "precondition": stale}),
        wire("POST", f"{tree.route}/memories/{first.id}", json={"path": "/c.md", "precondition": stale}),
        wire("DELETE", f"{tree.route}/memories/{first.id}", query={"expected_content_sha256": sha("C\n")}),
    ]
    for answer in path_conflicts:
        assert set(answer.refused(409, "memory_path_conflict_error")) >= {"conflicting_memory_id", "conflicting_path"}
    for answer in precondition_conflicts:
        assert first.id in answer.refused(409, "memory_precondition_failed_error")["message"]


@pytest.mark.case("RT-03")
def test_beta_header_combinations_when_creating_stores(wire):
    def create(beta):
        return wire("POST", "/v1/memory_stores", json={"name": "beta"}, beta=beta)

    before = count_stores(wire)
    create(MEMORY).ok()
    create(MANAGED).ok()
    message = create(f"{MANAGED},{MEMORY}").refused(400, "invalid_request_error")["message"]
    assert MEMORY in message and MANAGED in message
    create(None).refused(404, "not_found_error")
    create(f"{MEMORY}, {MEMORY},message-batches-2024-09-24").ok()
    assert count_stores(wire) - before == 3


def count_stores(wire) -> int:
    total, query = 0, {"limit": 100}
    while True:
        page = wire("GET", "/v1/memory_stores", query=query).ok()
        total += len(page["data"])
        if page["next_page"] is None:
            return total
        query["page"] = page["next_page"]


@pytest.mark.case("RT-04")
def test_the_session_beta_added_by_hand_is_refused(tree):
    with bad_request():
        tree.put("/a.md", betas=[MANAGED])
    assert tree.list() == []


@pytest.mark.case("RT-06")
def test_one_way_actions_can_be_repeated(wire, tree):
    memory = tree.put("/a.md", "A\n")
    tree.edit(memory.id, content="B\n")
    for action in (f"/memory_versions/{memory.memory_version_id}/redact", "/archive"):
        assert wire("POST", tree.route + action).ok() == wire("POST", tree.route + action).ok()


@pytest.mark.case("RT-08")
def test_every_answer_names_its_request(wire, tree):
    memory = tree.put("/a.md", "A\n")
    found = wire("GET", f"{tree.route}/memories/{memory.id}")
    unknown = wire("GET", f"{tree.route}/memories/mem_doesnotexist00000000000")
    found.ok()
    unknown.refused(404, "not_found_error")
    assert found.request_id != unknown.request_id
