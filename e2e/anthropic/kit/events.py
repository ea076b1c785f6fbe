"""A reader of server-sent events, as plain as the format is."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from kit.wire import MEMORY


@dataclass(frozen=True)
class Event:
    name: str
    id: str | None
    data: dict


class Stream:
    """One connection that reads events until it ends, whichever way."""

    def __init__(self, port: int, key: str, path: str, *, last: str | None = None, timeout: float = 60, **query) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        headers = {"x-api-key": key, "anthropic-beta": MEMORY, "accept": "text/event-stream"}
        if last is not None:
            headers["last-event-id"] = last
        self.connection.request("GET", f"{path}?{urlencode(query)}" if query else path, headers=headers)
        self.answer = self.connection.getresponse()

    @property
    def status(self) -> int:
        return self.answer.status

    def events(self) -> Iterator[Event]:
        """Events until the stream ends; a connection that breaks ends it too. Half an event is none."""
        name, event_id, data = "message", None, []
        try:
            while line := self.answer.readline():
                field, _, value = line.decode().rstrip("\n").partition(":")
                value = value.removeprefix(" ")
                if field == "event":
                    name = value
                elif field == "id":
                    event_id = value
                elif field == "data":
                    data.append(value)
                elif not field:
                    if data:
                        yield Event(name, event_id, json.loads("\n".join(data)))
                    name, event_id, data = "message", None, []
        except (OSError, http.client.HTTPException):
            return

    def close(self) -> None:
        self.connection.close()
