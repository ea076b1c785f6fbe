"""Waiting for conditions, calling at once, and refusals as the SDK raises them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import anthropic
import pytest


@contextlib.contextmanager
def refusal(status: int, error_type: str) -> Iterator[pytest.ExceptionInfo]:
    """The block must end in exactly this error of the API; its `.value` is there afterwards."""
    with pytest.raises(anthropic.APIStatusError) as caught:
        yield caught
    error = caught.value
    assert (error.status_code, error.type) == (status, error_type), error.body
    assert error.request_id == error.body["request_id"]


def bad_request() -> contextlib.AbstractContextManager:
    return refusal(400, "invalid_request_error")


def not_found() -> contextlib.AbstractContextManager:
    return refusal(404, "not_found_error")


def together(*calls: Callable[[], object]) -> list:
    """Run all calls at the same moment, each in a thread of its own; results in the order given."""
    gate = threading.Barrier(len(calls))

    def run(call):
        gate.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def eventually(check: Callable[[], object], seconds: float = 10, every: float = 0.05):
    """Poll until `check` gives something true; the last value either way, for the caller's assert."""
    end = time.monotonic() + seconds
    while not (value := check()) and time.monotonic() < end:
        time.sleep(every)
    return value
