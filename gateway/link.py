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
"""Errors of a node that is not, or no longer, or not yet, a master that accepts writes: the command is tried again. Not
OOM: the next command may free memory. (Redis: src/server.c, createSharedObjects; FENCED is of the journal.)"""

DENIED = ("WRONGPASS", "NOAUTH", "NOPERM")
"""Errors of a node that refuses the user, the password or the permissions of the gateway."""


class LostError(Exception):
    """A connection can no longer be used: it broke, or the node is not the master."""


class SilentError(LostError):
    """No answer arrived in time."""


class DeniedError(LostError):
    """A node refuses the gateway; somebody must change users, passwords or permissions."""


class Link:
    """An open connection. Answers come in the order of the commands."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._parser = hiredis.Reader()
        self._answers: deque[Any] = deque()

    @classmethod
    async def open(cls, address: Address, settings: Settings, *, sentinel: bool = False) -> Self:
        """Connects and authenticates.

        Raises:
            LostError: It cannot be reached in time, or its certificate is not trusted.
            DeniedError: It does not accept the user or the password.
        """
        try:
            async with asyncio.timeout(settings.connect_seconds):
                reader, writer = await asyncio.open_connection(*address, ssl=settings.upstream_tls(), limit=CHUNK)
        except (OSError, UnicodeError) as error:  # also TimeoutError, TLS errors, and names that are not valid
            raise LostError(f"{address} cannot be reached: {str(error) or 'no answer in time'}") from None
        keep_alive(writer)
        link = cls(address, reader, writer)
        try:
            await link._authenticate(settings, sentinel)
        except BaseException:
            link.close()
            raise
        return link

    async def _authenticate(self, settings: Settings, sentinel: bool) -> None:
        file = settings.sentinel_password_file if sentinel else settings.redis_password_file
        user = settings.sentinel_username if sentinel else settings.redis_username
        passwords = list(secrets(file))
        while passwords:
            try:
                await self.ask(settings.connect_seconds, b"AUTH", user.encode(), passwords.pop(0).encode())
                passwords.clear()
            except DeniedError:
                # During a change of passwords, the node may not know the newest one yet.
                if not passwords:
                    raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, commands: bytes) -> None:
        """Sends packed commands."""
        self._writer.write(commands)

    async def drain(self) -> None:
        """Waits until the node accepts more data."""
        try:
            await self._writer.drain()
        except OSError as error:
            raise LostError(f"{self.address}: {error}") from None

    @property
    def ready(self) -> bool:
        """Whether an answer has arrived."""
        return bool(self._answers)

    async def answer(self, within: float | None = None) -> Any:
        """The next answer; an error of the node is returned, not raised.

        Raises:
            SilentError: No answer arrived in time. The next call can still return it.
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
        """Sends a command while no other is unanswered, and returns its answer.

        Raises:
            LostError: As `answer`, and if the answer is an error.
            DeniedError: The node refuses the gateway, or this command of it.
        """
        return await self.ask_packed(within, packed(*command))

    async def ask_packed(self, within: float, command: bytes) -> Any:
        """`ask`, with a packed command."""
        self.send(command)
        answer = await self.answer(within)
        if isinstance(answer, hiredis.ReplyError):
            error = DeniedError if str(answer).startswith(DENIED) else LostError
            raise error(f"{self.address} answered: {answer}")
        return answer

    def close(self) -> None:
        """Closes the connection; whoever waits for an answer gets LostError."""
        self._writer.transport.abort()

    def farewell(self, command: bytes) -> None:
        """Sends a last command and closes the connection, without waiting for its answer."""
        self._writer.write(command)
        self._writer.close()


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Lets the kernel detect a dead peer within a minute."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
