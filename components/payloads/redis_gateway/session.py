"""One client: forwards its commands to the current master, and keeps its connection open."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain

from . import journal
from .commands import MOST_ARGUMENTS, RefusedError, kind_of
from .exchange import Exchange, Journal, Shared
from .greeting import Greeting
from .ledger import Entry, Ledger
from .link import LostError
from .masters import AGAIN_SECONDS, Masters
from .protocol import (
    LONGEST_ANONYMOUS,
    MOST_ANONYMOUS,
    ProtocolError,
    ReplyError,
    answer_parts,
    chunks,
    encoded,
    packed,
    read_command,
)
from .settings import Address
from .waiting import within

log = logging.getLogger(__name__)

FAREWELL_SECONDS = 2
"""How long a client that sends nothing more gets answers, and how long it may take to read the last ones."""


class Session:
    """The session of one client connection."""

    def __init__(
        self, shared: Shared, masters: Masters, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.ledger = Ledger()
        self._shared = shared
        self._settings, self._metrics = shared.settings, shared.metrics
        self._masters = masters
        self._reader = reader
        self._writer = writer
        self._greeting = Greeting(shared.settings, self._metrics.denied.inc)
        self._journal = Journal(journal.new_key(shared.settings.journal_prefix))
        self._exchange: Exchange | None = None
        self._room = asyncio.Event()
        self._answering = asyncio.Lock()
        self._out: Iterator[bytes | memoryview] = iter(())
        self._delivered = 0.0

    async def run(self) -> None:
        """Serves the client until it disconnects or violates the protocol."""
        tasks = {asyncio.create_task(part) for part in (self._read(), self._serve(), self._expire_forever())}
        stop_listening = self._masters.listen(self._moved)
        try:
            for finished in (await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))[0]:
                finished.result()
        except ProtocolError as error:
            log.warning("client dropped: %s", error)
            self._writer.write(encoded(ReplyError(f"ERR Protocol error: {error}")))
        finally:
            stop_listening()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writer.close()
        try:
            async with within(FAREWELL_SECONDS):
                await self._writer.wait_closed()
        except OSError:  # also TimeoutError: it does not read its last answers.
            self._writer.transport.abort()

    async def _read(self) -> None:
        while await self._take_next():
            while self.ledger.pending_bytes > self._settings.max_held_bytes:
                self._room.clear()
                await self._room.wait()
        # A client that has only ended its own direction still reads the answers.
        with suppress(TimeoutError):
            async with within(FAREWELL_SECONDS):
                while self.ledger.pending:
                    self._room.clear()
                    await self._room.wait()

    async def _take_next(self) -> bool:
        """Takes a command from the client. False: there will be no more."""
        longest, most = self._settings.max_command_bytes, MOST_ARGUMENTS + 1
        if not self._greeting.known:
            longest, most = min(longest, LONGEST_ANONYMOUS), MOST_ANONYMOUS
        if (command := await read_command(self._reader, longest, most)) is None:
            return False
        now = time.monotonic()
        answer = self._greeting.answer(command)
        if answer is None:
            try:
                kind = kind_of(command)
            except RefusedError as error:
                log.warning("command refused: %s", error)
                self._metrics.refused.inc()
                answer = ReplyError(str(error))
            else:
                self._metrics.commands.labels(command[0].upper().decode()).inc()
                self.ledger.add(command, kind, now)
                if self._exchange:
                    self._exchange.wake()
                return True
        self.ledger.add_answered(answer, now)
        await self._deliver()
        return True

    async def _serve(self) -> None:
        """Keeps a connection to the current master."""
        lost: float | None = None
        while True:
            address = await self._masters.current()
            try:
                exchange = await Exchange.begin(address, self._shared, self.ledger, self._journal, self._deliver)
            except LostError as error:
                self._masters.doubt(address, str(error))
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if lost is not None:
                self._metrics.outage.observe(time.monotonic() - lost)
            self._exchange = exchange
            self._metrics.connected.inc()
            try:
                await exchange.run()
            except LostError as error:
                lost = time.monotonic()
                log.info("connection lost: %s; %d commands unanswered", error, len(self.ledger.pending))
                self._masters.doubt(address, str(error))
                exchange.link.close()
            except asyncio.CancelledError:
                # The client disconnects: nobody needs its journal again.
                exchange.link.farewell(packed(b"UNLINK", self._journal.key) if self.ledger.written else b"")
                raise
            finally:
                self._exchange = None
                self._metrics.connected.dec()

    def _moved(self, master: Address) -> None:
        """Closes the connection to the old master, which may not know of the new one yet."""
        if self._exchange and self._exchange.link.address != master:
            self._exchange.link.close()

    async def _deliver(self) -> None:
        """Sends all answers that are due, as fast as the client takes them."""
        async with self._answering:
            await self._send(entry.answer for entry in self.ledger.deliver())

    async def _send(self, answers: Iterable[object]) -> None:
        """Sends answers, and before them the rest of what a cancelled call began."""
        self._out = chain(self._out, chunks(part for answer in answers for part in answer_parts(answer)))
        with suppress(OSError):  # The client has disconnected; reading from it fails too, and ends the session.
            for chunk in self._out:
                self._delivered = time.monotonic()
                self._room.set()
                self._writer.write(chunk)
                await self._writer.drain()

    async def _expire_forever(self) -> None:
        hold = self._settings.hold_seconds
        while True:
            await asyncio.sleep(max(self._held_since() + hold - time.monotonic(), 0.01))
            async with self._answering:
                await self._send(())
                now = time.monotonic()
                if self._held_since() + hold >= now:
                    continue
                expired = list(self.ledger.expire(now - hold))
                self._metrics.expired.inc(len(expired))
                log.error("%d commands given up after %g s: %s", len(expired), hold, self._masters.problem)
                if self._exchange:
                    self._exchange.link.close()
                await self._send(self._too_late(entry) for entry in expired)

    def _held_since(self) -> float:
        """Since when nothing has come nearer to the oldest answer that the client waits for."""
        if not self.ledger.pending:
            return time.monotonic()
        advanced = self._exchange.advanced() if self._exchange else 0.0
        return max(self.ledger.pending[0].arrived, self._delivered, advanced)

    def _too_late(self, entry: Entry) -> object:
        if entry.kind is None:
            return entry.answer
        hold, replicas = self._settings.hold_seconds, self._settings.wait_replicas
        if entry.answered:
            return ReplyError(
                f"NOREPLICAS redis-gateway: done on the master, but fewer than {replicas} replicas had it in {hold:g} s"
            )
        unsure = "; it may have been done" if entry.sent and entry.writes else ""
        return ReplyError(
            f"TRYAGAIN redis-gateway: no answer of a master in {hold:g} s{unsure} ({self._masters.problem})"
        )
