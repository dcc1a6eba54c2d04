"""The gateway: listens, runs a session for each client, and shuts down gracefully."""

from __future__ import annotations

import asyncio
import logging
import signal
import time

from . import health, journal
from .cursors import Cursors
from .exchange import Shared
from .link import Link, LostError, keep_alive
from .masters import AGAIN_SECONDS, Masters, check_role
from .metrics import Metrics
from .protocol import CHUNK, ReplyError, encoded
from .session import Session
from .settings import Address, Settings

log = logging.getLogger(__name__)


class Gateway:
    """Serves until SIGTERM or SIGINT, then lets clients finish; a second signal ends it at once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.health = health.Health()
        self.masters = Masters(settings)
        self._shared = Shared(settings, self.metrics, Cursors())
        self._sessions: dict[Session, asyncio.Task[None]] = {}
        self._signals = 0
        self._signalled = asyncio.Condition()
        self.metrics.clients.set_function(lambda: len(self._sessions))
        self.metrics.unanswered.set_function(lambda: sum(len(one.ledger.pending) for one in list(self._sessions)))
        self.metrics.held_bytes.set_function(lambda: sum(one.ledger.pending_bytes for one in list(self._sessions)))

    async def run(self) -> None:
        """Serves until a signal.

        Raises:
            OSError: It cannot listen on an address.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: loop.create_task(self._signal()))
        http = health.serve(self.settings.http_listen, self.health, self.metrics.registry)
        server = await asyncio.start_server(self._accept, *self.settings.listen, limit=CHUNK)
        self.masters.listen(self._moved)
        background = [
            asyncio.create_task(part) for part in (self.masters.run(), self._heartbeat(), self._become_ready())
        ]
        log.info("listening on %s", self.settings.listen)
        try:
            ended = asyncio.create_task(self._until_signals(1))
            await asyncio.wait({ended, *background[:2]}, return_when=asyncio.FIRST_COMPLETED)
            for task in background[:2]:
                if task.done():
                    task.result()
            server.close()
            await self._drain()
        finally:
            for task in (*background, *self._sessions.values()):
                task.cancel()
            await asyncio.gather(*background, *self._sessions.values(), return_exceptions=True)
            http.shutdown()
            http.server_close()
        log.info("ended")

    async def _signal(self) -> None:
        async with self._signalled:
            self._signals += 1
            self._signalled.notify_all()

    async def _until_signals(self, count: int) -> None:
        async with self._signalled:
            await self._signalled.wait_for(lambda: self._signals >= count)

    async def _drain(self) -> None:
        """Waits for clients to disconnect: a GCS ends if its connection breaks. A sidecar has no clients by then."""
        self.health.reason = "ending"
        log.info("ending; %d clients are connected", len(self._sessions))
        if self._sessions and self.settings.drain_seconds:
            second_signal = asyncio.create_task(self._until_signals(2))
            disconnected = asyncio.create_task(self._until_disconnected())
            await asyncio.wait(
                {second_signal, disconnected}, timeout=self.settings.drain_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            second_signal.cancel()
            disconnected.cancel()
        if self._sessions:
            log.warning("%d clients are cut off", len(self._sessions))

    async def _until_disconnected(self) -> None:
        while self._sessions:
            await asyncio.wait(self._sessions.values())

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._sessions) >= self.settings.max_clients:
            log.warning("a client was refused: %d are connected (max_clients)", len(self._sessions))
            writer.write(encoded(ReplyError("ERR max number of clients reached")))
            writer.close()
            return
        keep_alive(writer)
        session = Session(self._shared, self.masters, reader, writer)
        task = asyncio.create_task(session.run())
        self._sessions[session] = task
        try:
            await task
        except Exception:
            log.exception("a client was dropped")
        finally:
            del self._sessions[session]

    def _moved(self, _master: Address) -> None:
        self.metrics.masters.inc()

    async def _heartbeat(self) -> None:
        while True:
            self.health.seen = time.monotonic()
            await asyncio.sleep(1)

    async def _become_ready(self) -> None:
        """Sets ready after a master has accepted a write like those of sessions; until then sets the reason."""
        key, logged = journal.new_key(self.settings.journal_prefix), ""
        within = self.settings.connect_seconds
        while self.health.reason is not None:
            search = asyncio.ensure_future(self.masters.current())
            await asyncio.wait({search}, timeout=within)
            search.cancel()
            if (address := self.masters.address) is not None:
                try:
                    async with await Link.open(address, self.settings) as link:
                        await check_role(link, within)
                        await link.ask_packed(within, journal.opening(key, 1))
                        await link.ask(within, b"UNLINK", key)
                except LostError as error:
                    self.masters.doubt(address, str(error))
                else:
                    self.health.reason = None
                    log.info("ready")
                    return
            self.health.reason = self.masters.problem
            if logged != self.masters.problem:
                logged = self.masters.problem
                log.warning("not ready: %s", logged)
            await asyncio.sleep(AGAIN_SECONDS)
