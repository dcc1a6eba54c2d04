"""Finds the master: asks all Sentinels, and subscribes to their notifications of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from .link import Link, LostError
from .settings import Address, Settings
from .waiting import within

log = logging.getLogger(__name__)

AGAIN_SECONDS = 0.1
"""Time between two attempts while there is no master."""


class Masters:
    """Tracks the address of the master.

    A Sentinel may be wrong: it was partitioned, or has not learned of a failover yet. Each failover raises the
    configuration epoch, so the answer with the highest epoch counts. An answer below a known epoch counts only if most
    of the Sentinels give it: they were recreated.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._epoch = -1
        self._look_now = asyncio.Event()
        self._known = asyncio.Event()
        self._listeners: set[Callable[[Address], None]] = set()
        self.address: Address | None = None
        self.problem = "no Sentinel was asked yet"
        """Why there is no master, for people."""

    async def run(self) -> None:
        """Polls and listens until cancelled."""
        await asyncio.gather(self._look_forever(), *map(self._listen_forever, self._settings.sentinels))

    def doubt(self, address: Address, problem: str) -> None:
        """Reports that the address does not work as a master, and starts a new search."""
        self._trouble(problem)
        if address == self.address:
            self._known.clear()
            self._look_now.set()

    def _trouble(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("%s", problem)
            self.problem = problem

    async def current(self) -> Address:
        """Waits for the address of a master that nobody doubts."""
        await self._known.wait()
        assert self.address is not None
        return self.address

    def listen(self, listener: Callable[[Address], None]) -> Callable[[], None]:
        """Calls the listener when another node becomes the master. Returns a function that stops it."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def _look_forever(self) -> None:
        look = self._ask_sentinels if self._settings.sentinels else self._ask_nodes
        while True:
            self._look_now.clear()
            if (found := await look()) is not None:
                self._take(found)
            await asyncio.sleep(AGAIN_SECONDS)
            if self._known.is_set():
                await _at_most(self._settings.poll_seconds, self._look_now.wait())

    def _take(self, found: Address) -> None:
        moved = found != self.address
        self.address = found
        self._known.set()
        if moved:
            log.info("the master is %s", found)
            for listener in list(self._listeners):
                listener(found)

    async def _ask_sentinels(self) -> Address | None:
        sentinels = self._settings.sentinels
        tasks = [asyncio.create_task(self._ask(sentinel)) for sentinel in sentinels]
        answers: list[tuple[int, Address]] = []
        for next_answer in asyncio.as_completed(tasks):
            if (answer := await next_answer) is not None:
                answers.append(answer)
                # A Sentinel that hangs does not delay the result.
                if answer[0] > self._epoch or len(answers) > len(sentinels) // 2:
                    break
        for task in tasks:
            task.cancel()
        if not answers:
            # No Sentinel can promote another node, so the last master is tried again.
            return self.address
        epoch, address = max(answers)
        if epoch < self._epoch and len(answers) <= len(sentinels) // 2:
            self._trouble(f"only Sentinels that missed the last failover answer (epoch {epoch}, known: {self._epoch})")
            return None
        self._epoch = epoch
        return address

    async def _ask(self, sentinel: Address) -> tuple[int, Address] | None:
        name, limit = self._settings.master_name.encode(), self._settings.connect_seconds
        try:
            async with await Link.open(sentinel, self._settings, sentinel=True) as link:
                # During a failover, this command returns the promoted node before SENTINEL MASTER does.
                place = await link.ask(limit, b"SENTINEL", b"GET-MASTER-ADDR-BY-NAME", name)
                if place is None:
                    self._trouble(f"Sentinel {sentinel} knows no master {self._settings.master_name!r}")
                    return None
                fields = await link.ask(limit, b"SENTINEL", b"MASTER", name)
        except LostError as error:
            self._trouble(f"Sentinel {error}")
            return None
        values = {fields[at]: fields[at + 1] for at in range(0, len(fields), 2)}
        return int(values[b"config-epoch"]), Address(place[0].decode(), int(place[1]))

    async def _ask_nodes(self) -> Address | None:
        async def master(node: Address) -> Address | None:
            try:
                async with await Link.open(node, self._settings) as link:
                    await check_role(link, self._settings.connect_seconds)
            except LostError as error:
                self._trouble(str(error))
                return None
            return node

        masters = [node for node in await asyncio.gather(*map(master, self._settings.redis)) if node]
        if len(masters) > 1:
            self._trouble(f"more than one node reports that it is the master: {', '.join(map(str, masters))}")
            return None
        return masters[0] if masters else None

    async def _listen_forever(self, sentinel: Address) -> None:
        while True:
            try:
                async with await Link.open(sentinel, self._settings, sentinel=True) as link:
                    await link.ask(self._settings.connect_seconds, b"SUBSCRIBE", b"+switch-master")
                    while True:
                        message = await link.answer()
                        if message[2].split(b" ")[0] == self._settings.master_name.encode():
                            self._look_now.set()
            except LostError as error:
                log.debug("not listening to Sentinel %s", error)
            await asyncio.sleep(self._settings.connect_seconds)


async def check_role(link: Link, seconds: float) -> None:
    """Raises LostError unless the node reports that it is a master."""
    role: Any = (await link.ask(seconds, b"ROLE"))[0]
    if role != b"master":
        raise LostError(f"{link.address} is a {role.decode()}, not the master")


async def _at_most(seconds: float, awaited: Awaitable[Any]) -> None:
    """Waits for an awaitable, at most for that time."""
    with suppress(TimeoutError):
        async with within(seconds):
            await awaited
