"""One connection to the master: sends the commands of a ledger, receives answers, and waits for replicas."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from . import journal
from .commands import Repeat
from .cursors import Cursors
from .ledger import Entry, Ledger
from .link import LOST, Link, LostError, SilentError
from .masters import check_role
from .metrics import Metrics
from .protocol import ReplyError, Status, command_parts
from .settings import Address, Settings

log = logging.getLogger(__name__)

LOOKS = 5
"""How often, within `reply_seconds`, a silent connection is looked at for bytes that the node takes."""


@dataclass(frozen=True)
class Shared:
    """State that all sessions of a gateway share."""

    settings: Settings
    metrics: Metrics
    cursors: Cursors


@dataclass
class Journal:
    """The name of a client's journal, and the number of the connection that may write to it."""

    key: bytes
    epoch: int = 0


@dataclass(frozen=True)
class _Wait:
    """The expected answer of a WAIT."""


@dataclass
class _Expected:
    entry: Entry
    waits: bool
    """Whether a WAIT follows, which must succeed before the client gets the answer."""

    start: float = math.inf
    end: float = math.inf
    """Its first byte, and the one after its last, counted from the begin of the connection; known once it is sent."""


class Exchange:
    """Uses a link until it is lost."""

    def __init__(
        self,
        shared: Shared,
        link: Link,
        process: str,
        ledger: Ledger,
        own: Journal,
        answered: Callable[[], Awaitable[None]],
    ) -> None:
        self.link = link
        self._settings, self._metrics, self._cursors = shared.settings, shared.metrics, shared.cursors
        self._process = process
        self._ledger = ledger
        self._journal = own
        self._answered = answered
        self._expected: deque[_Expected | _Wait] = deque()
        self._since = 0.0
        """When the node last did something, or had nothing to do."""

        self._acknowledged = 0
        self._advanced = 0.0
        """When the node was last seen to have taken more of the command that it answers next."""

        self._wait_due = False
        self._woken = asyncio.Event()

    @classmethod
    async def begin(
        cls, address: Address, shared: Shared, ledger: Ledger, own: Journal, answered: Callable[[], Awaitable[None]]
    ) -> Exchange:
        """Connects to the master, and compares the writes that it has with the ledger.

        Raises:
            LostError: The node cannot be reached, or is not the master.
        """
        settings, metrics = shared.settings, shared.metrics
        link = await Link.open(address, settings)
        try:
            await check_role(link, settings.connect_seconds)
            process = await _run_id(link, settings.connect_seconds)
            done: dict[int, int | ReplyError] = {}
            if ledger.written:
                own.epoch += 1
                done = journal.done(await link.ask_packed(settings.reply_seconds, journal.opening(own.key, own.epoch)))
        except BaseException:
            link.close()
            raise
        settled = ledger.settle(done, time.monotonic())
        metrics.found.inc(settled.found)
        metrics.replayed.inc(settled.replayed)
        metrics.repaired.inc(settled.repaired)
        metrics.lost.inc(settled.lost)
        if settled.repaired or settled.lost:
            level = logging.ERROR if settled.lost else logging.WARNING
            log.log(level, "%s missed acknowledged writes: %d sent again, %d lost", address, *settled[2:])
        exchange = cls(shared, link, process, ledger, own, answered)
        if settings.wait_replicas:
            exchange._wait_due = settled.found > 0
        else:
            exchange._cover()
        return exchange

    def wake(self) -> None:
        """Signals that the ledger has commands to send."""
        self._woken.set()

    async def run(self) -> None:
        """Sends and receives until the link is lost.

        Raises:
            LostError: Always, in the end.
        """
        await self._answered()
        self._woken.set()
        sending = asyncio.create_task(self._send())
        receiving = asyncio.create_task(self._receive())
        try:
            for finished in (await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED))[0]:
                finished.result()
        finally:
            sending.cancel()
            receiving.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _send(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            batch = list(self._ledger.take_unsent())
            writes = any(entry.writes for entry in batch)
            waits = self._wait_due or (writes and self._settings.wait_replicas > 0)
            if not batch and not waits:
                continue
            if not self._expected:
                self._since = time.monotonic()
            expected = [_Expected(entry, waits) for entry in batch]
            self._expected.extend(expected)
            if waits:
                self._wait_due = False
                self._expected.append(_Wait())
            await self.link.send(self._parts(expected, waits))

    def _parts(self, batch: list[_Expected], waits: bool) -> Iterator[bytes]:
        at = self.link.written
        for expected in batch:
            expected.start = at
            for part in self._command(expected.entry):
                at += len(part)
                yield part
            expected.end = at
        if waits:
            milliseconds = str(round(self._settings.wait_seconds * 1000)).encode()
            yield from command_parts(b"WAIT", str(self._settings.wait_replicas).encode(), milliseconds)

    def _command(self, entry: Entry) -> Iterator[bytes]:
        assert entry.kind is not None
        if entry.kind.repeat is Repeat.JOURNALED:
            own = self._journal
            return journal.write(own.key, own.epoch, entry.number, entry.command, entry.kind)
        if entry.kind.repeat is Repeat.HARMLESS:
            return command_parts(*entry.command)
        at = entry.kind.cursor
        cursor, restarted = self._cursors.followed(self._process, entry.command[at])
        self._metrics.rescanned.inc(restarted)
        return command_parts(*entry.command[:at], cursor, *entry.command[at + 1 :])

    async def _receive(self) -> None:
        within = self._settings.reply_seconds
        while True:
            try:
                self._take(await self.link.answer(within / LOOKS))
            except SilentError:
                self._look()
                if self._expected and time.monotonic() - self._since >= within:
                    raise SilentError(f"{self.link.address} was silent for {within:g} s") from None
                continue
            if not self.link.ready:
                await self._answered()
                self._woken.set()

    def _look(self) -> None:
        """Notes whether the node takes the command that it answers next: a large value may take minutes.

        Other bytes do not count. The kernel of a node that hangs also takes them: later commands, and small ones.
        """
        before, self._acknowledged = self._acknowledged, self.link.acknowledged
        first = self._first()
        if first is None or before >= self._acknowledged:
            return
        if self._acknowledged < first.end or first.start < before < first.end:
            self._since = self._advanced = time.monotonic()

    def _first(self) -> _Expected | None:
        """The command that the node answers next; None if a WAIT is before it, or there is none."""
        first = self._expected[0] if self._expected else None
        return first if isinstance(first, _Expected) else None

    def advanced(self) -> float:
        """When the command whose answer the client waits for was last seen to come nearer to it; 0: not on this
        connection."""
        self._look()
        first = self._first()
        if first and self._ledger.pending and self._ledger.pending[0] is first.entry:
            return max(self._advanced, self.link.half_heard)
        return 0.0

    def _take(self, answer: Any) -> None:
        if not self._expected:
            raise LostError(f"{self.link.address} sent an answer without a command")
        self._since = time.monotonic()
        if isinstance(answer, ReplyError) and str(answer).startswith(LOST):
            raise LostError(f"{self.link.address} answered: {answer}")
        expected = self._expected.popleft()
        if isinstance(expected, _Wait):
            self._waited(answer)
            return
        expected.entry.answer = self._translated(expected.entry, answer)
        expected.entry.covered = not expected.waits

    def _translated(self, entry: Entry, answer: Any) -> Any:
        """Converts an answer for the client."""
        assert entry.kind is not None
        if entry.command[0].upper() == b"PING" and isinstance(answer, bytes) and len(entry.command) == 1:
            return Status(answer.decode())
        if entry.writes and isinstance(answer, bytes):
            return int(answer)  # A number too large for a script.
        if entry.kind.repeat is Repeat.CURSOR and isinstance(answer, list):
            return [self._cursors.given(self._process, answer[0]), *answer[1:]]
        return answer

    def _waited(self, replicas: Any) -> None:
        """Handles the answer of a WAIT, which covers all answers before it."""
        if isinstance(replicas, ReplyError):
            raise LostError(f"{self.link.address} answered: {replicas}")
        if replicas < self._settings.wait_replicas:
            self._metrics.unreplicated.inc()
            if self._settings.unreplicated == "hold":
                self._wait_due = True
                return
        self._cover()

    def _cover(self) -> None:
        for entry in self._ledger.pending:
            entry.covered |= entry.answered


async def _run_id(link: Link, within: float) -> str:
    """Identifies the process of a node; it changes with each start."""
    lines = (await link.ask(within, b"INFO", b"server")).decode().splitlines()
    return next(str(line).partition(":")[2] for line in lines if line.startswith("run_id:"))
