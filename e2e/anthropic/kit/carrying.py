"""Directories, repositories and servers of other makers, for what carries stores in and out."""

from __future__ import annotations

import http.client
import os
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Of the routes below /v1/memory_stores, these are Stele's own.
OWN = ("/changes", "/changesets", "/memories/search", "/memory_tool", "/export", "/import")


def plant(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def bytes_below(root: Path) -> dict[str, bytes]:
    """Every file of a directory but for git's own, byte for byte."""
    files = (file for file in root.rglob("*") if ".git" not in file.relative_to(root).parts)
    return {str(file.relative_to(root)): file.read_bytes() for file in files if file.is_file()}


class Repository:
    def __init__(self, root: Path, *, new: bool = True) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        if new:
            self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *args: str, **options) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"} | {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.com"))
        } | options.pop("env", {})
        done = subprocess.run(
            ["git", *args], cwd=self.root, env=env, capture_output=True, check=True, timeout=60, **options
        )
        return done.stdout.decode(errors="surrogateescape")

    def commit(self, message: str, files: dict[str, str | bytes] | None = None, *, date: str = "2024-05-06T07:08:09+0200") -> str:
        plant(self.root, files or {})
        self.git("add", "--all")
        env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        self.git("commit", "--quiet", "--allow-empty", "--message", message, env=env)
        return self.git("rev-parse", "HEAD").strip()

    def log(self, form: str) -> list[str]:
        return self.git("log", "--reverse", "-z", f"--format={form}").rstrip("\0").split("\0")


class PlainServer:
    """A server of the dialect that is no Stele: what is Stele's own is cut away, and calls are refused as `fault` says.

    `fault(number, method, path)` may give a status and headers; then the call does not get through.
    """

    def __init__(self, port: int, fault: Callable[[int, str, str], tuple[int, dict[str, str]] | None] | None = None) -> None:
        outer = self
        self.calls: list[tuple[str, str]] = []
        self.headers_seen: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                outer.calls.append((self.command, self.path))
                outer.headers_seen.append({name.lower(): value for name, value in self.headers.items()})
                path = self.path.split("?")[0]
                refused = fault and fault(len(outer.calls), self.command, self.path)
                if not path.startswith("/v1/memory_stores") or path.endswith(OWN):
                    refused = 404, {}
                if refused:
                    return self.answer(refused[0], refused[1], b'{"type":"error","error":{"type":"x","message":"no"}}')
                upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                upstream.request(self.command, self.path, body=body, headers=headers)
                got = upstream.getresponse()
                self.answer(got.status, {}, got.read())
                upstream.close()

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> PlainServer:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()
