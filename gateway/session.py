"""One client: forwards its commands to the current master, and keeps its connection open."""

import asyncio
import logging
import time
from contextlib import suppress

import hiredis

from . import journal
from .commands import MOST_ARGUMENTS, RefusedError, kind_of
from .exchange import Exchange, Journal, Shared
from .greeting import Greeting
from .ledger import Entry, Ledger
from .link import LostError
from .masters import AGAIN_SECONDS, Masters
from .protocol import LONGEST_ANONYMOUS, MOST_ANONYMOUS, ProtocolError, encoded, read_command
from .settings import Address

log = logging.getLogger(__name__)


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

    async def run(self) -> None:
        """Serves the client until it disconnects or violates the protocol."""
        tasks = {asyncio.create_task(part) for part in (self._read(), self._serve(), self._expire_forever())}
        stop_listening = self._masters.listen(self._moved)
        try:
            for finished in (await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED))[0]:
                finished.result()
        except ProtocolError as error:
            log.warning("client dropped: %s", error)
            self._writer.write(encoded(hiredis.ReplyError(f"ERR Protocol error: {error}")))
        finally:
            stop_listening()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writer.close()

    async def _read(self) -> None:
        longest, most = self._settings.max_command_bytes, MOST_ARGUMENTS + 1
        while True:
            known = self._greeting.known
            limits = (longest, most) if known else (min(longest, LONGEST_ANONYMOUS), MOST_ANONYMOUS)
            if (command := await read_command(self._reader, *limits)) is None:
                return
            self._take(command)
            while self.ledger.pending_bytes > self._settings.max_held_bytes:
                self._room.clear()
                await self._room.wait()

    def _take(self, command: list[bytes]) -> None:
        now = time.monotonic()
        answer = self._greeting.answer(command)
        if answer is None:
            try:
                kind = kind_of(command)
            except RefusedError as error:
                log.warning("command refused: %s", error)
                self._metrics.refused.inc()
                answer = hiredis.ReplyError(str(error))
            else:
                self._metrics.commands.labels(command[0].upper().decode()).inc()
                self.ledger.add(command, kind, now)
                if self._exchange:
                    self._exchange.wake()
                return
        self.ledger.add_answered(answer, now)
        self._deliver()

    async def _serve(self) -> None:
        """Keeps a connection to the current master."""
        lost: float | None = None
        while True:
            address = await self._masters.current()
            try:
                exchange = await Exchange.begin(
                    address, self._shared, self.ledger, self._journal, self._deliver_and_drain
                )
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
                exchange.link.farewell(journal.packed(b"UNLINK", self._journal.key) if self.ledger.written else b"")
                raise
            finally:
                self._exchange = None
                self._metrics.connected.dec()

    def _moved(self, master: Address) -> None:
        """Closes the connection to the old master, which may not know of the new one yet."""
        if self._exchange and self._exchange.link.address != master:
            self._exchange.link.close()

    def _deliver(self) -> None:
        if out := b"".join(encoded(entry.answer) for entry in self.ledger.deliver()):
            self._writer.write(out)
            self._room.set()

    async def _deliver_and_drain(self) -> None:
        self._deliver()
        with suppress(OSError):  # The client has disconnected; reading from it fails too, and ends the session.
            await self._writer.drain()

    async def _expire_forever(self) -> None:
        hold = self._settings.hold_seconds
        while True:
            oldest = self.ledger.pending[0].arrived if self.ledger.pending else time.monotonic()
            await asyncio.sleep(max(oldest + hold - time.monotonic(), 0.01))
            expired = list(self.ledger.expire(time.monotonic() - hold))
            if not expired:
                continue
            self._metrics.expired.inc(len(expired))
            log.error("%d commands given up after %g s: %s", len(expired), hold, self._masters.problem)
            self._writer.write(b"".join(encoded(self._too_late(entry)) for entry in expired))
            self._room.set()
            if self._exchange:
                self._exchange.link.close()

    def _too_late(self, entry: Entry) -> object:
        if entry.kind is None:
            return entry.answer
        hold, replicas = self._settings.hold_seconds, self._settings.wait_replicas
        if entry.answered:
            return hiredis.ReplyError(
                f"NOREPLICAS redis-gateway: done on the master, but fewer than {replicas} replicas had it in {hold:g} s"
            )
        unsure = "; it may have been done" if entry.sent and entry.writes else ""
        return hiredis.ReplyError(
            f"TRYAGAIN redis-gateway: no answer of a master in {hold:g} s{unsure} ({self._masters.problem})"
        )
