"""A connection to a node or a Sentinel."""

from __future__ import annotations

import asyncio
import socket
import struct
import termios
import time
from collections import deque
from collections.abc import Iterable
from fcntl import ioctl
from types import TracebackType
from typing import Any

from .passwords import passwords
from .protocol import CHUNK, Answers, ProtocolError, ReplyError, chunks, packed
from .settings import Address, Settings
from .waiting import within

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
        self._parser = Answers()
        self._answers: deque[Any] = deque()
        self.written = 0
        """Bytes of commands that were sent."""

        self._heard = 0.0
        self._within_a_command = False

    @classmethod
    async def open(cls, address: Address, settings: Settings, *, sentinel: bool = False) -> Link:
        """Connects and authenticates.

        Raises:
            LostError: It cannot be reached in time, or its certificate is not trusted.
            DeniedError: It does not accept the user or the password.
        """
        try:
            async with within(settings.connect_seconds):
                reader, writer = await asyncio.open_connection(*address, ssl=settings.upstream_tls(), limit=CHUNK)
        # OSError: also TimeoutError and TLS errors; UnicodeError: names that are not valid
        except (OSError, UnicodeError) as error:
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
        untried = list(passwords(file))
        while untried:
            try:
                await self.ask(settings.connect_seconds, b"AUTH", user.encode(), untried.pop(0))
                untried.clear()
            except DeniedError:
                # During a change of passwords, the node may not know the newest one yet.
                if not untried:
                    raise

    async def __aenter__(self) -> Link:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def send(self, parts: Iterable[bytes]) -> None:
        """Sends commands in parts, as fast as the node takes them.

        Raises:
            LostError: The connection broke.
        """
        self._within_a_command = True
        try:
            for chunk in chunks(parts):
                self._writer.write(chunk)
                self.written += len(chunk)
                await self._writer.drain()
        except OSError as error:
            raise LostError(f"{self.address}: {error}") from None
        self._within_a_command = False

    @property
    def acknowledged(self) -> int:
        """Bytes of commands that the node's machine has acknowledged."""
        try:
            unacknowledged = ioctl(self._writer.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):  # It is closed.
            return 0
        waiting: int = self._writer.transport.get_write_buffer_size() + struct.unpack("i", unacknowledged)[0]
        return self.written - waiting

    @property
    def half_heard(self) -> float:
        """When bytes of an answer last arrived that is not complete yet; 0: there is none."""
        return self._heard if self._parser.incomplete else 0.0

    @property
    def ready(self) -> bool:
        """Whether an answer has arrived."""
        return bool(self._answers)

    async def answer(self, seconds: float | None = None) -> Any:
        """The next answer; an error of the node is returned, not raised.

        Raises:
            SilentError: No answer arrived in time. The next call can still return it.
            LostError: The connection broke.
        """
        while not self._answers:
            try:
                async with within(seconds):
                    data = await self._next_bytes()
            except TimeoutError:
                raise SilentError(f"{self.address} was silent for {seconds:g} s") from None
            self._heard = time.monotonic()
            try:
                self._answers.extend(self._parser.feed(data))
            except ProtocolError as error:
                raise LostError(f"{self.address}: {error}") from None
        return self._answers.popleft()

    async def _next_bytes(self) -> bytes:
        try:
            data = await self._reader.read(CHUNK)
        except OSError as error:  # also ETIMEDOUT: keepalive found the peer dead, and each later read fails at once.
            raise LostError(f"{self.address}: {error}") from None
        if not data:
            raise LostError(f"{self.address} closed the connection")
        return data

    async def ask(self, seconds: float, *command: bytes) -> Any:
        """Sends a command while no other is unanswered, and returns its answer.

        Raises:
            LostError: As `answer`, and if the answer is an error.
            DeniedError: The node refuses the gateway, or this command of it.
        """
        return await self.ask_packed(seconds, packed(*command))

    async def ask_packed(self, seconds: float, command: bytes) -> Any:
        """`ask`, with a packed command."""
        self._writer.write(command)
        answer = await self.answer(seconds)
        if isinstance(answer, ReplyError):
            error = DeniedError if str(answer).startswith(DENIED) else LostError
            raise error(f"{self.address} answered: {answer}")
        return answer

    def close(self) -> None:
        """Closes the connection; whoever waits for an answer gets LostError."""
        self._writer.transport.abort()

    def farewell(self, command: bytes) -> None:
        """Sends a last command and closes the connection, without waiting for its answer."""
        if self._within_a_command:  # The node would take it for the rest of a value.
            self.close()
            return
        self._writer.write(command)
        self._writer.close()


def keep_alive(writer: asyncio.StreamWriter) -> None:
    """Lets the kernel detect a dead peer within a minute."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
