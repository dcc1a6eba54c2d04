"""A connection to a node or a Sentinel."""

import asyncio
import socket
from collections import deque
from types import TracebackType
from typing import Any, Self

import hiredis

from .journal import packed
from .settings import Address, Settings, secrets

CHUNK = 256 << 10

LOST = ("READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED", "MISCONF", "BUSY", "FENCED")
"""Errors of a node that is not, or no longer, or not yet, a master that takes writes: the command is kept for another
try. Not OOM: what frees memory may come next. (Redis: src/server.c, createSharedObjects; FENCED is the journal's.)"""

DENIED = ("WRONGPASS", "NOAUTH", "NOPERM")
"""Errors of a node that does not accept the gateway's user, its password, or what it may do."""


class LostError(Exception):
    """A connection can no longer be used: it broke, or the node is not the master that it should be."""


class SilentError(LostError):
    """Nothing came in time."""


class DeniedError(LostError):
    """A node refuses the gateway; somebody has to change users, passwords or rights."""


class Link:
    """An open connection, on which commands are sent and answers come in the same order."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._parser = hiredis.Reader()
        self._answers: deque[Any] = deque()

    @classmethod
    async def open(cls, address: Address, settings: Settings, *, sentinel: bool = False) -> Self:
        """Connects and says who we are.

        Raises:
            LostError: It cannot be reached in time, or its certificate is not trusted.
            DeniedError: It does not accept the user or the password.
        """
        try:
            async with asyncio.timeout(settings.connect_seconds):
                reader, writer = await asyncio.open_connection(*address, ssl=settings.upstream_tls(), limit=CHUNK)
        except (OSError, UnicodeError) as error:  # also TimeoutError, those of TLS, and names that are none
            raise LostError(f"{address} cannot be reached: {str(error) or 'no answer in time'}") from None
        keep_alive(writer)
        link = cls(address, reader, writer)
        try:
            await link._say_who(settings, sentinel)
        except BaseException:
            link.close()
            raise
        return link

    async def _say_who(self, settings: Settings, sentinel: bool) -> None:
        file = settings.sentinel_password_file if sentinel else settings.redis_password_file
        user = settings.sentinel_username if sentinel else settings.redis_username
        left = list(secrets(file))
        while left:
            try:
                await self.ask(settings.connect_seconds, b"AUTH", user.encode(), left.pop(0).encode())
                left.clear()
            except DeniedError:
                # While passwords are being changed, the node may not know the newest yet.
                if not left:
                    raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, commands: bytes) -> None:
        """Sends what is packed already."""
        self._writer.write(commands)

    async def drain(self) -> None:
        """Waits until the node takes more."""
        try:
            await self._writer.drain()
        except OSError as error:
            raise LostError(f"{self.address}: {error}") from None

    @property
    def ready(self) -> bool:
        """Whether an answer is here already."""
        return bool(self._answers)

    async def answer(self, within: float | None = None) -> Any:
        """The next answer; an error of the node is returned, not raised.

        Raises:
            SilentError: Nothing came in time. The next call can still return it.
            LostError: The connection broke.
        """
        while not self._answers:
            try:
                async with asyncio.timeout(within):
                    data = await self._reader.read(CHUNK)
                if not data:
                    raise LostError(f"{self.address} closed the connection")
                self._parser.feed(data)
                while (answer := self._parser.gets()) is not False:
                    self._answers.append(answer)
            except TimeoutError:
                raise SilentError(f"{self.address} was silent for {within:g} s") from None
            except (OSError, hiredis.ProtocolError) as error:
                raise LostError(f"{self.address}: {error}") from None
        return self._answers.popleft()

    async def ask(self, within: float, *command: bytes) -> Any:
        """Sends a command when nothing else is under way, and returns its answer.

        Raises:
            LostError: As `answer`, and when the answer is an error.
            DeniedError: The node does not accept the gateway, or not this command from it.
        """
        return await self.ask_packed(within, packed(*command))

    async def ask_packed(self, within: float, command: bytes) -> Any:
        """`ask`, with a packed command."""
        self.send(command)
        answer = await self.answer(within)
        if isinstance(answer, hiredis.ReplyError):
            error = DeniedError if str(answer).startswith(DENIED) else LostError
            raise error(f"{self.address} says: {answer}")
        return answer

    def close(self) -> None:
        """Ends it; whoever waits for an answer gets LostError."""
        self._writer.transport.abort()

    def farewell(self, command: bytes) -> None:
        """Sends a last command and ends the connection, without waiting for its answer."""
        self._writer.write(command)
        self._writer.close()


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Lets the kernel find within a minute that the other side is gone without a word."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
