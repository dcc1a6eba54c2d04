"""Clients that write through a gateway all the time, and compare the answers."""

import threading
import time
from types import TracebackType
from typing import Self

from tests.gateway.process import Gateway
from tests.gateway.waiting import SECONDS, eventually
from tests.gateway.wire import Wire

DEPTH = 16
"""Number of unanswered commands of a client."""


class Counter(threading.Thread):
    """Increments its own key, with many unanswered commands at once.

    The answers have to be 1, 2, 3 and so on: a lost, repeated or misordered command breaks the sequence.
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
        """Counts until `end`."""
        try:
            unanswered = 0
            while unanswered or not self._ending.is_set():
                while unanswered < DEPTH and not self._ending.is_set():
                    self._wire.send("INCRBY", self.key, 1)
                    unanswered += 1
                answer = self._wire.answer()
                unanswered -= 1
                if answer != self.counted + 1:
                    self.wrong = f"{answer!r} instead of {self.counted + 1}"
                    return
                self.counted += 1
                time.sleep(self._pause)
        except Exception as error:  # `check` raises it in the test's thread
            self.wrong = error

    def end(self) -> None:
        """Stops after all commands are answered."""
        self._ending.set()
        self.join(SECONDS)
        assert not self.is_alive(), f"{self.key} still waits for an answer after {SECONDS:g} s"


class Load:
    """Several counters that run during a `with` statement. At its end none may have received a wrong answer.

    `pause`: seconds that each waits after an answer.
    """

    def __init__(self, gateway: Gateway, clients: int = 4, pause: float = 0.0) -> None:
        self.counters = [Counter(Wire(gateway.port), f"counter-{number}", pause) for number in range(clients)]

    def __enter__(self) -> Self:
        for counter in self.counters:
            counter.start()
        self.advance(50)
        return self

    def advance(self, steps: int = 50) -> None:
        """Waits until each has received this number of further answers."""
        goals = [counter.counted + steps for counter in self.counters]

        def advanced() -> bool:
            self.check()
            return all(counter.counted >= goal for counter, goal in zip(self.counters, goals, strict=True))

        eventually(f"all clients have {steps} more answers", advanced)

    def check(self) -> None:
        """Fails with the wrong answers of all clients."""
        wrong = {counter.key: counter.wrong for counter in self.counters if counter.wrong is not None}
        assert not wrong, wrong

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for counter in self.counters:
            counter.end()
        if error is None:
            self.check()
