"""A minimal client: it never reconnects and never repeats, so that a test sees the behavior of the gateway."""

import socket
import ssl
from types import TracebackType
from typing import Any, Self, cast

import hiredis
import pytest

from tests.gateway.waiting import SECONDS


class ClosedError(ConnectionError):
    """The other side has closed the connection."""


class Wire:
    """A connection that speaks the Redis protocol."""

    def __init__(
        self, port: int, password: str | None = None, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
    ) -> None:
        plain = socket.create_connection((host, port), timeout=SECONDS)
        self._socket = tls.wrap_socket(plain, server_hostname=host) if tls else plain
        self._parser = hiredis.Reader()
        self._rest = memoryview(b"")
        if password is not None:
            self.must("AUTH", password)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, *command: str | bytes | int) -> None:
        """Sends a command without waiting for its answer."""
        self._socket.sendall(hiredis.pack_command(cast(Any, command)))

    def send_until_full(self, *command: str | bytes | int) -> int:
        """Repeats a command until the other side has stopped reading; returns the number of commands that were begun.

        `send_rest` sends the rest of the last one.
        """
        packed = memoryview(hiredis.pack_command(cast(Any, command)))
        self._socket.settimeout(0.3)
        begun = 0
        try:
            while True:
                begun, self._rest = begun + 1, packed
                while self._rest:
                    self._rest = self._rest[self._socket.send(self._rest) :]
        except TimeoutError:
            return begun
        finally:
            self._socket.settimeout(SECONDS)

    def send_rest(self) -> None:
        """Sends the rest of the last command once the other side reads again."""
        self._socket.sendall(self._rest)

    def hold_little(self) -> None:
        """Lets the kernel hold few answers that were not read."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)

    def end_sending(self) -> None:
        """Closes its own direction of the connection, like `printf ... | nc`."""
        self._socket.shutdown(socket.SHUT_WR)

    def raw(self, text: bytes) -> None:
        """Sends bytes, which need not be a command."""
        self._socket.sendall(text)

    def answer(self) -> Any:
        """The next answer; an error is returned as hiredis.ReplyError."""
        while (answer := self._parser.gets()) is False:
            if not (data := self._socket.recv(1 << 16)):
                raise ClosedError
            self._parser.feed(data)
        return answer

    def ask(self, *command: str | bytes | int) -> Any:
        """Sends a command and returns its answer."""
        self.send(*command)
        return self.answer()

    def must(self, *command: str | bytes | int) -> Any:
        """The answer; fails if it is an error."""
        answer = self.ask(*command)
        if isinstance(answer, hiredis.ReplyError):
            pytest.fail(f"{command[0]!r} was answered: {answer}")
        return answer
