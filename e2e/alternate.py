"""Hands each request to the next of several servers, so that a suite written for one server meets them all.

Usage: alternate.py LISTEN_PORT SERVER_PORT... (all on 127.0.0.1; one request after the other goes to the next server)
"""

import http.client
import itertools
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    turn = itertools.count()
    ports: list[int] = []
    kept = threading.local()

    def upstream(self, port: int) -> http.client.HTTPConnection:
        connections = self.kept.__dict__
        if port not in connections:
            connections[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        return connections[port]

    def body(self) -> bytes | None:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(parts)
        length = self.headers.get("content-length")
        return None if length is None else self.rfile.read(int(length))

    def forward(self) -> None:
        body = self.body()
        port = self.ports[next(self.turn) % len(self.ports)]
        for attempt in (1, 2):
            upstream = self.upstream(port)
            try:
                upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in HOP | {"content-length"}:
                        upstream.putheader(name, value)
                if body is not None:
                    upstream.putheader("content-length", str(len(body)))
                upstream.endheaders(body)
                answer = upstream.getresponse()
                text = answer.read()
                break
            except (http.client.RemoteDisconnected, ConnectionError):
                # A connection kept from an earlier request had been closed meanwhile.
                upstream.close()
                if attempt == 2:
                    raise
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, value)
        if answer.status != 204:
            length = answer.getheader("content-length") if self.command == "HEAD" else str(len(text))
            self.send_header("content-length", length or "0")
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = forward

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


if __name__ == "__main__":
    listen, *ports = map(int, sys.argv[1:])
    Handler.ports = ports
    Server(("127.0.0.1", listen), Handler).serve_forever()
