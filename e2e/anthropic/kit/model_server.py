"""A provider of models in this process that answers what it is told to, on both wires, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODELS = ["scripted-1", "scripted-2"]
SECRET = "sk-e2e-secret-0123456789"
LEAK = "what-a-provider-says-in-errors"


class ModelServer:
    def __init__(self) -> None:
        self.replies: list[dict | int] = []
        self.log: list[dict] = []
        self.lists = True
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"owner": self}))
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)

    def start(self) -> ModelServer:
        self.thread.start()
        return self

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def says(self, *texts: str | int) -> None:
        """The texts of the next answers, or the statuses of failures."""
        self.replies += texts

    def table(self, name: str, kind: str, *more: str) -> str:
        """The provider's table in a configuration."""
        base = self.url + ("/v1" if kind == "openai" else "")
        lines = [f"[models.providers.{name}]", f"kind = '{kind}'", f"base_url = '{base}'", "api_key_env = 'E2E_MODEL_KEY'"]
        return "\n".join([*lines, *more]) + "\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ModelServer

    def log_message(self, *_: object) -> None:
        pass

    def send(self, status: int, media: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", media)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        key = self.headers.get("x-api-key") or self.headers.get("authorization")
        self.owner.log.append({"path": self.path, "key": key})
        listed = {"data": [{"id": model} for model in MODELS], "has_more": False}
        self.send(200 if self.owner.lists else 503, "application/json", json.dumps(listed).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        key = self.headers.get("x-api-key") or self.headers.get("authorization")
        self.owner.log.append({"path": self.path, "key": key, "body": body})
        reply = self.owner.replies.pop(0)
        if isinstance(reply, int):
            return self.send(reply, "application/json", json.dumps({"error": {"message": LEAK}}).encode())
        events = anthropic(reply) if self.path.endswith("/messages") else openai(reply)
        lines = "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)
        return self.send(200, "text/event-stream", lines.encode())


def anthropic(text: str) -> list[dict]:
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]


def openai(text: str) -> list[dict | str]:
    return [
        {"choices": [{"delta": {"content": text}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 3}},
        "[DONE]",
    ]
