"""The curl samples of the dialect's public page, as it prints them: only address, key and ids are changed."""

import json
import re
import shutil
import subprocess

import pytest

from api import sha

ADDRESS = "https://api.recursion.labelbox.com"
STORE = "6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80"
MEMORY = "8c4f1a62-7d95-4b30-a2e8-5f0c9d3b6a71"
VERSION = "2f9a6c41-3b75-4d08-a1e6-8c5e7b2d9a30"
HASH = "4f1c9a0e7b2d5836c1e04a9f7d3b6e2a8c5f0d1b9e7a3c6f2d8b4e0a1c7f5d93"

pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("bash", "curl"))), reason="needs bash and curl")

# On the page this one also has an agent_id; it waits for agents.
CREATE_STORE = r"""
curl -X POST 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores' \
  -H "Authorization: Bearer $RECURSION_API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{
    "name": "Release policy",
    "description": "How we version, tag, and ship releases, and who approves them."
  }'
"""
CREATE_MEMORY = r"""
curl -X POST 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/memories' \
  -H "Authorization: Bearer $RECURSION_API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{
    "path": "/releases/versioning.md",
    "summary": "How release versions are chosen.",
    "content": "Bump the minor version for features and the patch version for fixes."
  }'
"""
BROWSE = r"""
curl 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/memories?path_prefix=/releases/' \
  -H "Authorization: Bearer $RECURSION_API_KEY"
"""
READ = r"""
curl 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/memory?path=/releases/versioning.md' \
  -H "Authorization: Bearer $RECURSION_API_KEY"
"""
UPDATE = r"""
curl -X POST 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/memories/8c4f1a62-7d95-4b30-a2e8-5f0c9d3b6a71' \
  -H "Authorization: Bearer $RECURSION_API_KEY" \
  -H 'Content-Type: application/json' \
  -d '{
    "content": "Bump the minor version for features, the patch version for fixes, and the major version for breaking changes.",
    "content_sha256": "4f1c9a0e7b2d5836c1e04a9f7d3b6e2a8c5f0d1b9e7a3c6f2d8b4e0a1c7f5d93"
  }'
"""
LIST_STORES = r"""
curl 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores?origin=curated' \
  -H "Authorization: Bearer $RECURSION_API_KEY"
"""
ARCHIVE = r"""
curl -X POST 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/archive' \
  -H "Authorization: Bearer $RECURSION_API_KEY"
"""
HISTORY = r"""
curl 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/memory_versions?memory_id=8c4f1a62-7d95-4b30-a2e8-5f0c9d3b6a71' \
  -H "Authorization: Bearer $RECURSION_API_KEY"
"""
REDACT = r"""
curl -X POST 'https://api.recursion.labelbox.com/managed-agents/v1/memory_stores/6e2a9c41-5b73-4d08-a1f6-9c3e7b5d2a80/memory_versions/2f9a6c41-3b75-4d08-a1e6-8c5e7b2d9a30/redact' \
  -H "Authorization: Bearer $RECURSION_API_KEY"
"""


def test_the_samples_work_in_the_order_of_the_page(server):
    ids: dict[str, str] = {}

    def run(sample: str, status: int):
        for old, new in ids.items():
            sample = sample.replace(old, new)
        sample = sample.replace(ADDRESS, server.url).rstrip() + r" -sS -w '\n%{http_code}'"
        done = subprocess.run(
            ["bash", "-c", sample],
            env={"PATH": "/usr/bin:/bin", "RECURSION_API_KEY": server.admin_key, "NO_PROXY": "*"},
            capture_output=True,
            text=True,
            timeout=30,
        )
        body, _, code = done.stdout.rpartition("\n")
        assert int(code) == status, done.stdout + done.stderr
        return json.loads(body) if body else None

    store = run(CREATE_STORE, 201)
    assert re.fullmatch(r"release-policy(-\d+)?", store["slug"])
    ids[STORE] = store["memory_store_id"]
    memory = run(CREATE_MEMORY, 201)
    ids |= {MEMORY: memory["memory_id"], HASH: memory["content_sha256"], VERSION: memory["head_version_id"]}
    assert memory["content_sha256"] == sha(memory["content"])
    summary = {"summary": "How release versions are chosen.", "byte_size": memory["byte_size"]}
    assert run(BROWSE, 200) == {"entries": [{"type": "memory", "path": "/releases/versioning.md"} | summary]}
    assert run(READ, 200) == memory
    assert run(UPDATE, 200)["head_version_id"] != memory["head_version_id"]
    assert run(UPDATE, 200)["content_sha256"] != memory["content_sha256"]
    assert store["memory_store_id"] in [s["memory_store_id"] for s in run(LIST_STORES, 200)["memory_stores"]]
    run(ARCHIVE, 204)
    assert [v["operation"] for v in run(HISTORY, 200)["memory_versions"]] == ["update", "create"]
    run(REDACT, 204)
    assert "redacted_at" in run(HISTORY, 200)["memory_versions"][1]
