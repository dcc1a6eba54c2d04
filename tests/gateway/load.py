"""Clients that write through a gateway all the time, and know what they were told."""

import ssl
import threading
import time
from types import TracebackType
from typing import Self

from tests.gateway.process import Gateway
from tests.gateway.waiting import SECONDS, eventually
from tests.gateway.wire import Wire

DEPTH = 16
"""Commands that a client has under way."""


class Counter(threading.Thread):
    """Counts up on its own key, many steps under way at once.

    The answers have to be 1, 2, 3 and so on: one that is lost, done twice or out of order breaks the row.
    """

    def __init__(self, wire: Wire, name: str, pause: float = 0.0) -> None:
        super().__init__(daemon=True)
        self._pause = pause
        self.key = f"RAYload@{name}"
        self.counted = 0
        self.wrong: object = None
        self._wire = wire
        self._ending = threading.Event()

    def run(self) -> None:
        """Counts until told to end."""
        try:
            under_way = 0
            while under_way or not self._ending.is_set():
                while under_way < DEPTH and not self._ending.is_set():
                    self._wire.send("INCRBY", self.key, 1)
                    under_way += 1
                answer = self._wire.answer()
                under_way -= 1
                if answer != self.counted + 1:
                    self.wrong = f"{answer!r} instead of {self.counted + 1}"
                    return
                self.counted += 1
                time.sleep(self._pause)
        except Exception as error:  # a thread has nobody else to tell
            self.wrong = error

    def end(self) -> None:
        """Stops, when all that is under way is answered."""
        self._ending.set()
        self.join(SECONDS)
        assert not self.is_alive(), f"{self.key} still waits for an answer after {SECONDS:g} s"


class Load:
    """Several counters, for as long as a `with` lasts; then none of them may have seen anything wrong.

    `pause`: seconds that each rests after an answer.
    """

    def __init__(
        self, gateway: Gateway, clients: int = 4, tls: ssl.SSLContext | None = None, pause: float = 0.0
    ) -> None:
        self.counters = [Counter(Wire(gateway.port, tls=tls), f"counter-{number}", pause) for number in range(clients)]

    def __enter__(self) -> Self:
        for counter in self.counters:
            counter.start()
        self.advance(50)
        return self

    def advance(self, steps: int = 50) -> None:
        """Waits until each has counted on by so many."""
        goals = [counter.counted + steps for counter in self.counters]

        def there() -> bool:
            self.check()
            return all(counter.counted >= goal for counter, goal in zip(self.counters, goals, strict=True))

        eventually(f"all clients have {steps} more answers", there)

    def check(self) -> None:
        """Fails with what clients saw that should not be."""
        wrong = {counter.key: counter.wrong for counter in self.counters if counter.wrong is not None}
        assert not wrong, wrong

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for counter in self.counters:
            counter.end()
        if error is None:
            self.check()
