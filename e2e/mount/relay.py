"""A line to the server that goes silent, answers for the server, or loses answers."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Forwards HTTP over TCP to a server of this machine. `mode` is looked at for each piece of data:

    `open` forwards; `silent` lets nothing through and refuses nothing, as a cut network does (what was sent meanwhile is
    lost, with its connection); a number is answered to each request in the server's place, with the wish `retry_after`;
    `lose answers` lets requests through and hangs up on the answers to changes; `spoil answers` puts a 500 in the place of
    every answer; `hold the feed` keeps answers to who waits for changes until the mode is another.
    """

    def __init__(self, port: int) -> None:
        self.upstream, self.mode, self.requests = port, "open", []
        self.retry_after: int | None = None
        self.changed = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def set(self, mode: str | int) -> None:
        with self.changed:
            self.mode = mode
            self.changed.notify_all()

    def close(self) -> None:
        self.set("open")
        for sock in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            server = socket.create_connection(("127.0.0.1", self.upstream))
            self.sockets.append(server)
            asked: list[str] = []
            threading.Thread(target=self._back, args=(server, client, asked), daemon=True).start()
            while data := client.recv(65536):
                lines = [line.decode() for line in data.split(b"\r\n") if line.endswith(b" HTTP/1.1")]
                self.requests += lines
                asked += lines
                if self._silent():
                    break
                if isinstance(self.mode, int):
                    self._refuse(client, self.mode)
                    break
                server.sendall(data)
        self._hang_up(client)

    def _back(self, server: socket.socket, client: socket.socket, asked: list[str]) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                lost = self.mode == "lose answers" and asked[-1].startswith("POST")
                if self.mode == "hold the feed" and "/changes?" in asked[-1] and "wait=0" not in asked[-1]:
                    with self.changed:
                        self.changed.wait_for(lambda: self.mode != "hold the feed")
                if self._silent() or lost:
                    break
                if self.mode == "spoil answers":
                    self._refuse(client, 500)
                    break
                client.sendall(data)
        self._hang_up(client)
        self._hang_up(server)

    def _refuse(self, client: socket.socket, status: int) -> None:
        body = b'{"type":"error","error":{"type":"api_error","message":"not now"},"request_id":"req_0"}'
        head = f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\nconnection: close\r\n"
        if self.retry_after is not None:
            head += f"retry-after: {self.retry_after}\r\n"
        client.sendall(head.encode() + f"content-length: {len(body)}\r\n\r\n".encode() + body)

    def _silent(self) -> bool:
        """Whether data met a silent line; waits until the line is no longer silent."""
        if self.mode != "silent":
            return False
        with self.changed:
            self.changed.wait_for(lambda: self.mode != "silent")
        return True

    @staticmethod
    def _hang_up(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            sock.close()
