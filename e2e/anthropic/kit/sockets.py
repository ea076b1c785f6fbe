"""Bare sockets, for requests that no HTTP library would send."""

from __future__ import annotations

import contextlib
import socket


def connect(port: int, *, receive_buffer: int | None = None, timeout: float = 30) -> socket.socket:
    sock = socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(timeout)
    sock.connect(("127.0.0.1", port))
    return sock


def request_bytes(method: str, target: str, headers: list[tuple[str, str]], body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "host: 127.0.0.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode() + body


def exchange(port: int, data: bytes, *, timeout: float = 10) -> bytes:
    """Send, close the sending side, and return whatever comes back. Being cut off is an answer too."""
    received = b""
    with connect(port, timeout=timeout) as sock, contextlib.suppress(ConnectionError):
        sock.sendall(data)
        with contextlib.suppress(OSError):  # it was cut off already
            sock.shutdown(socket.SHUT_WR)
        while chunk := sock.recv(65536):
            received += chunk
    return received
