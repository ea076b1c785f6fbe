"""The way of a first user: the official SDK does the whole of a memory's life."""

from anthropic import AsyncAnthropic

from kit.expect import not_found, refusal
from kit.tree import Tree, if_text, sha


def test_a_memory_lives_from_creation_to_redaction(server, new_client):
    """Every answer is validated strictly, so a missing or mistyped field fails here."""
    client = new_client(server, _strict_response_validation=True)
    tree = Tree.planted(client, description="what the user likes", metadata={"team": "a"})
    tea = tree.put("/likes/tea.md", "green\n", view="full")
    assert (tea.path, tea.content, tea.content_sha256) == ("/likes/tea.md", "green\n", sha("green\n"))
    tree.put("/likes/cake.md", "apple\n")
    tree.put("/notes.md", "call home\n")
    assert tree.paths(path_prefix="/likes/") == ["/likes/cake.md", "/likes/tea.md"]
    assert [(i.type, i.path) for i in tree.list(depth=1)] == [("memory_prefix", "/likes/"), ("memory", "/notes.md")]

    changed = tree.edit(tea.id, content="black\n", precondition=if_text("green\n"))
    assert (changed.id, changed.content_sha256) == (tea.id, sha("black\n"))
    with refusal(409, "memory_precondition_failed_error"):
        tree.edit(tea.id, content="oolong\n", precondition=if_text("green\n"))
    moved = tree.edit(tea.id, path="/drinks/tea.md")
    assert (moved.id, moved.path) == (tea.id, "/drinks/tea.md")

    history = tree.versions(tea.id)
    assert [(v.operation, v.path) for v in history] == [
        ("modified", "/drinks/tea.md"),
        ("modified", "/likes/tea.md"),
        ("created", "/likes/tea.md"),
    ]
    redacted = tree.redact(history[-1].id)
    assert (redacted.content, redacted.path, redacted.content_sha256) == (None, None, None)
    assert tree.read(tea.id).content == "black\n"

    assert tree.drop(tea.id).type == "memory_deleted"
    with not_found():
        tree.read(tea.id)
    assert tree.archive().archived_at is not None
    assert client.beta.memory_stores.delete(tree.id).type == "memory_store_deleted"
    with not_found():
        client.beta.memory_stores.retrieve(tree.id)


async def test_the_asynchronous_client_works_too(server):
    async with AsyncAnthropic(base_url=server.url, api_key=server.admin_key, max_retries=0) as client:
        stores = client.beta.memory_stores
        store = await stores.create(name="async")
        made = [await stores.memories.create(store.id, path=f"/{i}.md", content=str(i)) for i in range(5)]
        assert [m.id async for m in stores.memories.list(store.id, limit=2)] == [m.id for m in made]
        assert (await stores.memories.retrieve(made[3].id, memory_store_id=store.id)).content == "3"


def test_raw_responses_carry_the_request_id(tree):
    answer = tree.stores.with_raw_response.retrieve(tree.id)
    assert answer.parse().id == tree.id and answer.headers["request-id"].startswith("req_")
