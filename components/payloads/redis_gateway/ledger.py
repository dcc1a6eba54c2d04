"""Commands of one client that are unanswered or recently answered: all that a failover may lose.

It has no sockets and no clock; `session.py` drives it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .commands import Kind, Repeat
from .journal import WINDOW
from .settings import LONGEST_HOLD

IN_FLIGHT = WINDOW // 8
"""Number of writes that may be unanswered on a connection."""

KEPT = WINDOW - IN_FLIGHT
"""Number of answered writes that are kept in case a new master does not have them.

It is not enough that one replica has a write: `SENTINEL FAILOVER` promotes one replica while the old master accepts
writes for about a second, which the other replica confirms.
"""

KEPT_BYTES = 16 << 20
"""Size of those writes."""

KEPT_SECONDS = LONGEST_HOLD
"""How long they are kept. The journal on the master lives twice as long."""

ENTRY_BYTES = 512
"""Approximate size of an entry without its arguments."""

_NOTHING = object()


@dataclass(eq=False)
class Entry:
    """A command and its state."""

    command: list[bytes]
    kind: Kind | None
    """None: the gateway answers itself."""

    arrived: float
    number: int = 0
    """Of a write: its number among the writes of this client, from 1. Of others: that of the last write before."""

    answer: Any = field(default=_NOTHING)
    covered: bool = False
    """Whether enough replicas have it, or it needs none."""

    sent: bool = False
    """Whether it was sent to some master, which may have done it."""

    @property
    def answered(self) -> bool:
        """Whether it has an answer, of a master or of the gateway itself."""
        return self.answer is not _NOTHING

    @property
    def writes(self) -> bool:
        """Whether it is a write, which is in the journal."""
        return self.kind is not None and self.kind.repeat is Repeat.JOURNALED

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        return sum(map(len, self.command)) + ENTRY_BYTES


class Settled(NamedTuple):
    """Numbers of commands by their state on a new master."""

    found: int
    """Already done there; the journal had the answer, which was lost with the old master."""

    replayed: int
    """Sent before, and sent again."""

    repaired: int
    """Those of them that the client had an answer for, but the new master did not have."""

    lost: int
    """Acknowledged before, missing on the new master, and no longer kept here."""


class Ledger:
    """The entries of one client, in order of arrival."""

    def __init__(self) -> None:
        self.pending: deque[Entry] = deque()
        self.pending_bytes = 0
        self.written = 0
        """Number of the last write."""

        self._unsent: deque[Entry] = deque()
        self._reads: deque[Entry] = deque()
        """The pending reads of the master."""

        self._kept: deque[Entry] = deque()
        self._kept_bytes = 0
        self._no_longer_kept = (0, 0.0)
        """Number and time of the last acknowledged write that was dropped for lack of room."""

    def add(self, command: list[bytes], kind: Kind, now: float) -> None:
        """Adds a command for the master."""
        entry = Entry(command, kind, now)
        if entry.writes:
            self.written += 1
        else:
            self._reads.append(entry)
        entry.number = self.written
        self._append(entry)
        self._unsent.append(entry)

    def add_answered(self, answer: Any, now: float) -> None:
        """Adds an answer of the gateway itself, in order with the others."""
        self._append(Entry([], None, now, answer=answer, covered=True))

    def _append(self, entry: Entry) -> None:
        self.pending.append(entry)
        self.pending_bytes += entry.size

    def take_unsent(self) -> Iterator[Entry]:
        """The entries to send next, in order, as far as the window of the journal allows.

        A write is sent after all reads before it are answered: a repeated read would see the write.
        """
        oldest = next((entry.number for entry in self.pending if entry.writes), self.written)
        while (
            self._unsent and self._unsent[0].number - oldest < IN_FLIGHT and not self._follows_a_read(self._unsent[0])
        ):
            entry = self._unsent.popleft()
            entry.sent = True
            yield entry

    def _follows_a_read(self, entry: Entry) -> bool:
        """Whether the entry is a write and a read before it is unanswered."""
        return entry.writes and bool(self._reads) and self._reads[0].number < entry.number

    def settle(self, done: Mapping[int, Any], now: float) -> Settled:
        """Prepares for another connection. `done`: the writes that its master has, answers by number."""
        while self._kept and self._kept[0].arrived < now - KEPT_SECONDS:
            self._kept_bytes -= self._kept.popleft().size
        dropped, dropped_at = self._no_longer_kept
        lost = max(dropped - max(done, default=0), 0) if dropped_at > now - KEPT_SECONDS else 0
        again = [entry for entry in self._kept if entry.number not in done]
        repaired, found = len(again), 0
        for entry in self.pending:
            if entry.writes and entry.number in done:
                found += 1
                entry.answer, entry.covered = done[entry.number], False
            elif not (entry.answered and entry.covered):
                entry.answer, entry.covered = _NOTHING, False
                again.append(entry)
        self._unsent = deque(again)
        return Settled(found, len([entry for entry in again if entry.sent]), repaired, lost)

    def deliver(self) -> Iterator[Entry]:
        """Removes and returns the entries that can be answered now, in order."""
        while self.pending and self.pending[0].answered and self.pending[0].covered:
            entry = self._pop()
            if entry.writes and isinstance(entry.answer, int):
                self._kept.append(entry)
                self._kept_bytes += entry.size
            while self._kept_bytes > KEPT_BYTES:
                self._drop_oldest()
            yield entry

    def expire(self, before: float) -> Iterator[Entry]:
        """Removes and returns the entries that arrived before that time."""
        while self.pending and self.pending[0].arrived < before:
            yield self._pop()

    def _pop(self) -> Entry:
        entry = self.pending.popleft()
        self.pending_bytes -= entry.size
        if self._reads and self._reads[0] is entry:
            self._reads.popleft()
        while entry.writes and self._kept and self._kept[0].number <= entry.number - KEPT:
            self._drop_oldest()
        return entry

    def _drop_oldest(self) -> None:
        entry = self._kept.popleft()
        self._kept_bytes -= entry.size
        self._no_longer_kept = (entry.number, entry.arrived)
