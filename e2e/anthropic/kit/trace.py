"""Reading what strace wrote (`-f`, with the paths of descriptors)."""

from __future__ import annotations

import re
from dataclasses import dataclass

BEGUN = re.compile(r"(\w+)\((.*)")
RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)")


@dataclass
class SystemCall:
    name: str
    text: str
    started: int  # line of the trace; a call that another thread overlaps has two
    ended: int


def system_calls(trace: str) -> list[SystemCall]:
    """All calls in the order in which they started."""
    calls: list[SystemCall] = []
    unfinished: dict[str, SystemCall] = {}
    for number, line in enumerate(trace.splitlines()):
        pid, _, event = line.partition(" ")
        event = event.lstrip()
        if resumed := RESUMED.match(event):
            call = unfinished.pop(pid, None)
            if call is not None:
                call.ended = number
                call.text += resumed[1]
        elif begun := BEGUN.match(event):
            call = SystemCall(begun[1], begun[2], number, number)
            calls.append(call)
            if event.endswith("<unfinished ...>"):
                unfinished[pid] = call
    return calls
