"""Waiting for a condition."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 120.0
"""Seconds that a test waits for a condition before it fails."""


def eventually(what: str, look: Callable[[], T], seconds: float = SECONDS) -> T:
    """Waits until `look` returns a true value, and returns it; fails with `what`, the condition.

    A server that cannot be reached, or closes the connection like a new master, counts as not ready yet.
    """
    end = time.monotonic() + seconds
    while True:
        last: object
        try:
            if found := look():
                return found
            last = found
        except OSError as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds:g} s; last: {last!r}")
        time.sleep(0.02)
