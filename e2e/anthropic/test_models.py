"""Providers of language models: the configuration, `stele model`, and what a server shows of them. docs/MODELS.md."""

from __future__ import annotations

import json

import pytest

from kit.model_server import LEAK, SECRET, ModelServer
from kit.server import stele
from kit.wire import Wire

KEY = {"E2E_MODEL_KEY": SECRET}


@pytest.fixture
def provider():
    server = ModelServer().start()
    yield server
    server.close()


@pytest.fixture
def run(tmp_path):
    """`run("model", "list", config=...)`: a command with this configuration."""

    def run(*args: str, config: str, env: dict | None = None):
        (tmp_path / "stele.toml").write_text(config)
        ran = stele(*args, "--config", "stele.toml", home=tmp_path, env=KEY if env is None else env)
        for text in (ran.stdout, ran.stderr):
            assert SECRET not in text and LEAK not in text
        return ran

    return run


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_a_model_is_listed_and_tried(run, provider, kind):
    config = provider.table("p", kind, "price = { input = 1000.0, output = 2000.0 }")
    listed = run("model", "list", config=config)
    assert listed.returncode == 0 and "p/scripted-1" in listed.stdout and "p/scripted-2" in listed.stdout, listed
    provider.says("ready")
    tried = json.loads(run("model", "test", "scripted-1", "--json", config=config).stdout)
    assert (tried["model_ref"], tried["answer"], tried["stop_reason"]) == ("p/scripted-1", "ready", "end_turn")
    assert (tried["input_tokens"], tried["output_tokens"], tried["tokens_estimated"]) == (11, 3, False)
    assert tried["cost"] == pytest.approx(0.017)
    assert provider.log[-1]["body"]["model"] == "scripted-1"
    assert all(SECRET in got["key"] for got in provider.log)
    provider.says("ready\x1b[2J")
    assert '"ready\\u{1b}[2J"' in run("model", "test", "p/scripted-2", config=config).stdout


def test_what_is_wrong_is_said_with_what_to_do(run, provider):
    config = provider.table("p", "openai")
    for status, code, word in [(401, 6, "api_key_env"), (404, 3, "base_url"), (400, 5, "malformed")]:
        provider.says(status)
        failed = run("model", "test", "p/scripted-1", config=config)
        assert failed.returncode == code and word in failed.stderr and str(status) in failed.stderr, failed
    unknown = run("model", "test", "nowhere/x", config=config)
    assert unknown.returncode == 3 and "stele model list" in unknown.stderr
    dead = "[models.providers.p]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n"
    for args in [("list",), ("test", "m")]:
        assert run("model", *args, config=dead).returncode == 7
    none = run("model", "list", config="")
    assert none.returncode == 3 and "[models.providers." in none.stderr


def test_the_configuration_is_checked_without_showing_a_key(run, provider):
    config = provider.table("p", "openai", "models = ['m']")
    checked = json.loads(run("config", "check", "--json", config=config).stdout)
    assert checked["models.providers.p"] == f"openai at {provider.url}/v1, with a key, models m"
    unset = run("config", "check", config=config, env={})
    assert unset.returncode == 1 and "E2E_MODEL_KEY is not set" in unset.stderr
    written = run("config", "check", config=config + f"api_key = '{SECRET}'\n")
    assert written.returncode == 1 and "api_key_env" in written.stderr
    assert "unknown field" in run("config", "check", config=config + "colour = 'red'\n").stderr


@pytest.fixture
def modelled(fresh_server, provider, tmp_path):
    """A server with the provider, and one that does not answer."""
    dead = "[models.providers.dead]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n"
    server = fresh_server(start=False, env=KEY)
    server.data_dir.mkdir(mode=0o700)
    (server.data_dir / "stele.toml").write_text(provider.table("p", "openai") + dead)
    yield server.start()
    assert SECRET not in server.log and LEAK not in server.log


def test_a_server_shows_its_models_and_how_their_providers_are(modelled):
    wire = Wire(modelled.port, modelled.admin_key)
    shown = wire("GET", "/stele/v1/models").ok()
    assert [model["model_ref"] for model in shown["models"]] == ["p/scripted-1", "p/scripted-2"]
    assert shown["models"][0]["context_tokens"] == 131072 and "price" not in shown["models"][0]
    dead, alive = shown["providers"]
    assert dead["name"] == "dead" and "cannot be reached" in dead["problem"]
    assert alive == {"name": "p", "kind": "openai"}
    metrics = wire("GET", "/metrics").text
    assert 'stele_model_calls_total{provider="p",result="answered"} 0' in metrics


def test_a_server_without_a_provider_shows_none(wire, new_key):
    for caller in (wire, wire.as_key(new_key(role="reader")["key"])):
        assert caller("GET", "/stele/v1/models").ok() == {"models": [], "providers": []}
    wire("GET", "/stele/v1/models", auth=None).refused_flat(401, "unauthorized")
