"""`listModels`, and which models agents may name once a provider is configured. spec/recursion.md 8.5 and 10."""

from __future__ import annotations

import asyncio

import pytest
from recursion import create_recursion_client

from api import Api, invalid, refused
from kit.model_server import SECRET, ModelServer
from kit.wire import Wire


@pytest.fixture
def provider():
    server = ModelServer().start()
    yield server
    server.close()


@pytest.fixture
def modelled(fresh_server, provider, tmp_path) -> Api:
    """The dialect of a server whose provider is ours."""
    data = tmp_path / "server0" / "data"
    data.mkdir(parents=True, mode=0o700)
    (data / "stele.toml").write_text(provider.table("fake", "openai"))
    server = fresh_server(env={"E2E_MODEL_KEY": SECRET})
    return Api(Wire(server.port, server.admin_key))


def agent(model: str) -> dict:
    return {"name": "a", "model": model, "system": "s"}


def test_the_catalogue_is_shown_with_an_etag(modelled, provider):
    answer = modelled("GET", "/models")
    first, second = answer.ok()["items"]
    assert first == {
        "modelId": "fake/scripted-1",
        "displayName": "scripted-1",
        "family": "fake",
        "supportsImageInput": False,
        "contextWindow": 131072,
    }
    assert second["modelId"] == "fake/scripted-2"
    etag = answer.headers["etag"]
    for same in (etag, f'"x", {etag}', f"W/{etag}", "*"):
        unchanged = modelled("GET", "/models", headers=[("if-none-match", same)])
        assert (unchanged.status, unchanged.body, unchanged.headers["etag"]) == (304, b"", etag)
    assert modelled("GET", "/models", headers=[("if-none-match", '"x"')]).status == 200
    assert [got["path"] for got in provider.log] == ["/v1/models"], "it is fetched once"


def test_the_official_client_reads_the_catalogue(modelled):
    async def listed():
        url = f"http://127.0.0.1:{modelled.wire.port}"
        client = create_recursion_client(api_key=modelled.wire.key, base_url=url, timeout_seconds=60)
        return await client.managed_agents.list_models()

    items = asyncio.run(listed()).items
    assert [(item.model_id, item.context_window) for item in items] == [
        ("fake/scripted-1", 131072),
        ("fake/scripted-2", 131072),
    ]


def test_a_provider_that_does_not_answer_is_said(modelled, provider):
    provider.lists = False
    refused(modelled("GET", "/models"), 503, "model_gateway_unreachable")
    # Nobody can say that it lists no such model.
    assert modelled.ok("POST", "/agents", agent("fake/anything"))["model"] == "fake/anything"


def test_agents_name_models_that_are_listed(modelled):
    made = modelled.ok("POST", "/agents", agent("fake/scripted-1"))
    assert made["model"] == "fake/scripted-1"
    invalid(modelled("POST", "/agents", agent("fake/other")), "model")
    learning = f"/agents/{made['agent_id']}/learning"
    assert modelled.ok("PATCH", learning, {"memory_model_ref": "fake/scripted-2"})["memory_model_ref"] == "fake/scripted-2"
    invalid(modelled("PATCH", learning, {"memory_model_ref": "fake/other"}), "memory_model_ref")
    changed = agent("nowhere/other") | {"base_agent_version_id": made["latest_agent_version_id"]}
    invalid(modelled("POST", f"/agents/{made['agent_id']}/versions", changed), "model")
