"""A network that loses answers."""

from __future__ import annotations

import contextlib
import socket
import threading


class CuttingProxy:
    """Forwards TCP connections. On the first it waits for the answer, which proves the commit, and hangs up."""

    def __init__(self, port: int) -> None:
        self.upstream = port
        self.accepted = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.sockets: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self) -> CuttingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        for sock in [self.listener, *self.sockets]:
            hang_up(sock)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.accepted += 1
                server = socket.create_connection(("127.0.0.1", self.upstream))
                self.sockets += [client, server]
                threading.Thread(target=forward, args=(client, server), daemon=True).start()
                answer = lose if self.accepted == 1 else forward
                threading.Thread(target=answer, args=(server, client), daemon=True).start()


def forward(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    hang_up(target)


def lose(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        source.recv(65536)
    hang_up(target)


def hang_up(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
