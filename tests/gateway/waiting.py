"""Waiting for what has to happen."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SECONDS = 30.0
"""How long a test waits for something before it fails."""


def eventually(what: str, look: Callable[[], T], seconds: float = SECONDS) -> T:
    """Waits until `look` answers something true, and returns that; fails with `what` was awaited.

    A server that cannot be reached, or closes the connection as a new master does, is one that is not there yet.
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
