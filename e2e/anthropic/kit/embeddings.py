"""An embeddings endpoint of a test: a few meanings, and any way of failing."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MEANINGS = [
    ("dog", "puppy", "hound", "canine"),
    ("car", "automobile", "vehicle"),
    ("doctor", "physician", "clinic"),
]


def vector(text: str) -> list[float]:
    """How many words of each meaning are in the text, and a little of nothing."""
    words = text.lower().split()
    return [float(sum(word.strip(".,?") in meaning for word in words)) for meaning in MEANINGS] + [0.1]


class Embeddings:
    """`mode` says how it answers: `well`, `slow`, `500`, `longer` (another dimension), `nonsense`, or `closed`."""

    def __init__(self) -> None:
        self.mode = "well"
        self.texts: list[str] = []
        self.keys: set[str | None] = set()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.answer(self)

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def env(self) -> dict[str, str]:
        return {
            "STELE_EMBEDDING_BASE_URL": f"http://127.0.0.1:{self.server.server_port}/v1",
            "STELE_EMBEDDING_MODEL": "meanings",
            "STELE_EMBEDDING_API_KEY": "sk-of-the-endpoint",
        }

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["content-length"])))
        mode = self.mode
        self.keys.add(request.headers["authorization"])
        self.texts += body["input"]
        if mode == "slow":
            time.sleep(1.5)
        if mode == "closed":
            request.close_connection = True
            return
        longer = [1.0] if mode == "longer" else []
        data = [{"index": n, "embedding": vector(text) + longer} for n, text in enumerate(body["input"])]
        answer = b"<html>" if mode == "nonsense" else json.dumps({"data": data, "model": body["model"]}).encode()
        request.send_response(500 if mode == "500" else 200)
        request.send_header("content-type", "application/json")
        request.send_header("content-length", str(len(answer)))
        request.end_headers()
        request.wfile.write(answer)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
