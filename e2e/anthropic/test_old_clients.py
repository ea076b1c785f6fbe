"""The header styles of every SDK generation in the field, sent as those clients send them."""

import http.client
import json

import pytest

from kit.wire import MANAGED, MEMORY

STYLES = {
    # generation: (credential header, version, suffix, beta value)
    "python 2, typescript 1": ("bearer", "2026-10-21", "", MEMORY),
    "python 0.116 to 1.17": ("x-api-key", "2023-06-01", "?beta=true", MEMORY),
    "python before 0.116": ("x-api-key", "2023-06-01", "?beta=true", MANAGED),
}
STAINLESS = {
    "X-Stainless-Lang": "python",
    "X-Stainless-Package-Version": "0.100.0",
    "X-Stainless-Retry-Count": "0",
    "X-Stainless-Helper": "environments-worker",
    "User-Agent": "Anthropic/Python 0.100.0",
    "Accept": "application/json",
}


class OldClient:
    def __init__(self, server, style) -> None:
        auth, version, self.suffix, beta = style
        credential = (
            {"Authorization": f"Bearer {server.admin_key}"} if auth == "bearer" else {"X-Api-Key": server.admin_key}
        )
        self.headers = {
            **credential,
            **STAINLESS,
            "Anthropic-Version": version,
            "Anthropic-Beta": beta,
            "Content-Type": "application/json",
        }
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def __call__(self, method: str, path: str, body: dict | None = None, query: str = ""):
        target = path + self.suffix
        if query:
            target += ("&" if self.suffix else "?") + query
        self.connection.request(method, target, body=None if body is None else json.dumps(body), headers=self.headers)
        response = self.connection.getresponse()
        answer = json.loads(response.read())
        assert response.status == 200, answer
        return answer


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_an_older_client_lives_a_whole_life(server, style):
    call = OldClient(server, style)
    store = f"/v1/memory_stores/{call('POST', '/v1/memory_stores', {'name': 'old'})['id']}"
    memory = call("POST", f"{store}/memories", {"path": "/b.md", "content": "one"})
    call("POST", f"{store}/memories", {"path": "/a.md", "content": "two"})
    assert call("GET", f"{store}/memories/{memory['id']}")["content"] == "one"
    listed = call("GET", f"{store}/memories", query="order_by=created_at&order=desc&path_prefix=%2F&limit=1")
    assert [m["path"] for m in listed["data"]] == ["/a.md"]
    rest = call(
        "GET",
        f"{store}/memories",
        query=f"order_by=created_at&order=desc&path_prefix=%2F&limit=1&page={listed['next_page']}",
    )
    assert [m["path"] for m in rest["data"]] == ["/b.md"]
    call("POST", f"{store}/memories/{memory['id']}", {"content": "three"})
    versions = call("GET", f"{store}/memory_versions", query=f"memory_id={memory['id']}")["data"]
    assert call("POST", f"{store}/memory_versions/{versions[-1]['id']}/redact")["content"] is None
    assert call("DELETE", f"{store}/memories/{memory['id']}")["type"] == "memory_deleted"
    assert call("POST", f"{store}/archive")["archived_at"]
    assert call("DELETE", store)["type"] == "memory_store_deleted"
