"""What one client asked and was not answered yet, and what it was answered lately: all that a failover may lose.

Pure: no sockets, no clock of its own. `session.py` moves it.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .commands import Kind, Repeat
from .journal import WINDOW
from .settings import LONGEST_HOLD

IN_FLIGHT = WINDOW // 8
"""Writes that may be unanswered on a connection."""

KEPT = WINDOW - IN_FLIGHT
"""Writes already answered that are kept for the case that a new master does not have them.

That a replica has a write is not enough: `SENTINEL FAILOVER` promotes one replica while the old master goes on for
about a second, with the other replica to confirm what it takes.
"""

KEPT_BYTES = 16 << 20
"""Of those."""

KEPT_SECONDS = LONGEST_HOLD
"""How long they are kept; the journal that says whether a master has them lives twice as long."""

ENTRY_BYTES = 512
"""What an entry takes beside its arguments, about."""

_NOTHING = object()


@dataclass(eq=False, slots=True)
class Entry:
    """A command and what became of it."""

    command: list[bytes]
    kind: Kind | None
    """None: the gateway itself answers."""

    arrived: float
    number: int = 0
    """Of a write: its place among this client's writes, from 1. Of another command: of the last write before it."""

    answer: Any = field(default=_NOTHING)
    covered: bool = False
    """Enough replicas have it, or it needs none."""

    sent: bool = False
    """It was sent to some master, which may have done it."""

    @property
    def answered(self) -> bool:
        """Whether a master, or the gateway itself, has said the answer."""
        return self.answer is not _NOTHING

    @property
    def writes(self) -> bool:
        """Whether it is in a journal."""
        return self.kind is not None and self.kind.repeat is Repeat.JOURNALED

    @property
    def size(self) -> int:
        """Bytes that it takes, about."""
        return sum(map(len, self.command)) + ENTRY_BYTES


class Settled(NamedTuple):
    """What a new master had, in numbers of commands."""

    found: int
    """Done there already; the answer, lost with the old master, was in the journal."""

    replayed: int
    """Sent before, and sent again."""

    repaired: int
    """Of those: acknowledged to the client before, but unknown to the new master."""

    lost: int
    """Acknowledged before, unknown to the new master, and no longer kept here."""


class Ledger:
    """The entries of one client, in the order in which they came."""

    def __init__(self) -> None:
        self.pending: deque[Entry] = deque()
        self.pending_bytes = 0
        self.written = 0
        """Number of the last write."""

        self._unsent: deque[Entry] = deque()
        self._reads: deque[Entry] = deque()
        """Of those pending, what the master is asked and writes nothing."""

        self._kept: deque[Entry] = deque()
        self._kept_bytes = 0
        self._no_longer_kept = (0, 0.0)
        """Number and time of the last write that was acknowledged and for which there was no room among those kept."""

    def add(self, command: list[bytes], kind: Kind, now: float) -> None:
        """A command for the master."""
        entry = Entry(command, kind, now)
        if entry.writes:
            self.written += 1
        else:
            self._reads.append(entry)
        entry.number = self.written
        self._append(entry)
        self._unsent.append(entry)

    def add_answered(self, answer: Any, now: float) -> None:
        """An answer of the gateway itself, in its place among the others."""
        self._append(Entry([], None, now, answer=answer, covered=True))

    def _append(self, entry: Entry) -> None:
        self.pending.append(entry)
        self.pending_bytes += entry.size

    def take_unsent(self) -> Iterator[Entry]:
        """What to send next, in order, as far as the journal's window allows.

        A write goes when all that was asked before it is answered: a read that has to be repeated would see it.
        """
        oldest = next((entry.number for entry in self.pending if entry.writes), self.written)
        while self._unsent and self._unsent[0].number - oldest < IN_FLIGHT and not self._is_read_first(self._unsent[0]):
            entry = self._unsent.popleft()
            entry.sent = True
            yield entry

    def _is_read_first(self, entry: Entry) -> bool:
        """Whether an answer is due to something that was asked before that write."""
        return entry.writes and bool(self._reads) and self._reads[0].number < entry.number

    def settle(self, done: Mapping[int, Any], now: float) -> Settled:
        """Begins anew on another connection. Its master has done what `done` says: number and answer of each write."""
        while self._kept and self._kept[0].arrived < now - KEPT_SECONDS:
            self._kept_bytes -= self._kept.popleft().size
        last, when = self._no_longer_kept
        lost = max(last - max(done, default=0), 0) if when > now - KEPT_SECONDS else 0
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
        """The entries that can be answered now, in order; they are no longer pending."""
        while self.pending and self.pending[0].answered and self.pending[0].covered:
            entry = self._pop()
            if entry.writes and isinstance(entry.answer, int):
                self._kept.append(entry)
                self._kept_bytes += entry.size
            while self._kept_bytes > KEPT_BYTES:
                self._let_go()
            yield entry

    def expire(self, before: float) -> Iterator[Entry]:
        """The entries that came before that time and are given up; they are no longer pending."""
        while self.pending and self.pending[0].arrived < before:
            yield self._pop()

    def _pop(self) -> Entry:
        entry = self.pending.popleft()
        self.pending_bytes -= entry.size
        if self._reads and self._reads[0] is entry:
            self._reads.popleft()
        while entry.writes and self._kept and self._kept[0].number <= entry.number - KEPT:
            self._let_go()
        return entry

    def _let_go(self) -> None:
        entry = self._kept.popleft()
        self._kept_bytes -= entry.size
        self._no_longer_kept = (entry.number, entry.arrived)
