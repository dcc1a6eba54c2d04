"""Ends the language host when the engine, or somebody in a terminal, asks it to."""

import contextlib
import select
import signal
import socket

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The engine ends its plugins with SIGINT and kills those that run after five seconds
(sdk/go/common/util/cmdutil/term.go)."""


class Stop:
    """Whether this process has to end. The main thread creates it before it starts others; all threads may wait.

    A threading.Event would not do. A handler that interrupts the event's own wait waits for its lock for ever, and a
    signal just before the wait does not wake it (Python runs handlers between two bytecodes of the main thread). So
    each signal writes a byte (signal.set_wakeup_fd), which nobody reads.
    """

    def __init__(self) -> None:
        """From now on signals no longer end the process by themselves."""
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)

    def set(self) -> None:
        """Does what a signal does."""
        with contextlib.suppress(BlockingIOError):  # full, so it is set
            self._writer.send(b"\0")

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set, or for these seconds; returns whether it is set."""
        return bool(select.select([self._reader], [], [], seconds)[0])
