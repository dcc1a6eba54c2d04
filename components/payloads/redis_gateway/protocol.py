"""The Redis protocol (RESP2): reads commands of clients and answers of nodes, and how both are sent. Ray's images have
no library for it.

Anyone who can connect sends commands, so they are read within limits.

A value may have hundreds of MiB, and the container's memory is limited. So a large value is never copied as a whole: it
is read into the object that is kept, and sent in chunks of that object.
"""

from __future__ import annotations

from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import Generator, Iterable, Iterator
from io import BytesIO
from typing import Any

CHUNK = 256 << 10
"""Bytes that are read or sent at once."""

LONGEST_ANONYMOUS = 16 << 10
"""Largest command in bytes before authentication (as Redis: the limit of unauthenticated connections)."""

MOST_ANONYMOUS = 10
"""Most arguments of such a command."""

_LONGEST_LINE = 64 << 10
"""Bytes of a line in an answer, as in clients of Redis (sds of hiredis has the same limit for inline replies)."""

_DEEPEST = 8
"""Most arrays within each other in an answer. The gateway's commands have answers with two."""


class ProtocolError(Exception):
    """The other side violates the protocol or its limits; its connection must be closed."""


class ReplyError(Exception):
    """An error as an answer; its text is the line of the protocol."""


class Status(str):
    """A simple string, such as PONG, in contrast to a bulk string."""

    __slots__ = ()


async def read_command(reader: StreamReader, longest: int, most: int) -> list[bytes] | None:
    """The next command with its arguments; None if the client has disconnected.

    Raises:
        ProtocolError: The input is not a command, is longer than `longest` bytes, or has more than `most` arguments.
    """
    try:
        count = 0
        while count <= 0:  # Redis skips empty commands too.
            count = await _number(reader, b"*")
        if count > most:
            raise ProtocolError(f"a command has {count} arguments; at most {most} are taken")
        command: list[bytes] = []
        room = longest
        for _ in range(count):
            length = await _number(reader, b"$")
            if not 0 <= length <= room:
                raise ProtocolError(f"an argument has {length} bytes; a command may have {longest} (max_command_bytes)")
            room -= length
            command.append(await _argument(reader, length))
    except (IncompleteReadError, OSError):
        return None
    except (LimitOverrunError, ValueError) as error:
        raise ProtocolError(f"not the Redis protocol: {error}") from None
    return command


async def _number(reader: StreamReader, mark: bytes) -> int:
    line = await reader.readuntil(b"\r\n")
    if line[:1] != mark:
        raise ProtocolError(f"expected {mark.decode()!r}, got {line[:1].decode('ascii', 'replace')!r}")
    return int(line[1:])


async def _argument(reader: StreamReader, length: int) -> bytes:
    if length <= CHUNK:
        return (await reader.readexactly(length + 2))[:-2]
    # `readexactly` would hold it twice. A BytesIO returns its own buffer, without a copy.
    whole = BytesIO()
    while (missing := length - whole.tell()) > 0:
        if not (part := await reader.read(min(missing, CHUNK))):
            raise IncompleteReadError(b"", missing)
        whole.write(part)
    await reader.readexactly(2)
    return whole.getvalue()


class Answers:
    """Reads answers from the bytes that arrive: bytes, integers, None, lists of them, and ReplyError."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._read: list[Any] = []
        self._parser = self._answers()
        self.incomplete = False
        """Whether a part of an answer has arrived."""

    def feed(self, data: bytes) -> list[Any]:
        """The answers that are complete with these bytes.

        Raises:
            ProtocolError: They are not answers. The connection must be closed.
        """
        self._buffer += data
        try:
            next(self._parser)
        except ValueError as error:
            raise ProtocolError(f"not the Redis protocol: {error}") from None
        read, self._read = self._read, []
        return read

    def _answers(self) -> Generator[None]:
        """Yields whenever it needs more bytes, as all generators here."""
        while True:
            while not self._buffer:
                self.incomplete = False
                yield
            self.incomplete = True
            answer = yield from self._answer(0)
            self._read.append(answer)

    def _answer(self, depth: int) -> Generator[None, None, Any]:
        line = yield from self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            return ReplyError(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else (yield from self._value(length))
        if kind != b"*" or depth > _DEEPEST:
            raise ProtocolError(f"not an answer of Redis: {line[:32]!r}")
        number = int(rest)
        parts = []
        for _ in range(number):
            parts.append((yield from self._answer(depth + 1)))
        return None if number < 0 else parts

    def _line(self) -> Generator[None, None, bytes]:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _LONGEST_LINE:
                raise ProtocolError(f"a line of an answer has more than {_LONGEST_LINE} bytes")
            yield
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _value(self, length: int) -> Generator[None, None, bytes]:
        whole = BytesIO()
        while (missing := length - whole.tell()) > 0:
            while not self._buffer:
                yield
            with memoryview(self._buffer) as view:
                whole.write(view[:missing])
            del self._buffer[:missing]
        while len(self._buffer) < 2:
            yield
        if self._buffer[:2] != b"\r\n":
            raise ProtocolError("a value of an answer is longer than its length")
        del self._buffer[:2]
        return whole.getvalue()


def command_parts(*command: bytes) -> Iterator[bytes]:
    """A command in the protocol, in parts for `chunks`."""
    if sum(map(len, command)) <= CHUNK:
        yield b"".join((b"*%d\r\n" % len(command), *(b"$%d\r\n%s\r\n" % (len(each), each) for each in command)))
        return
    yield b"*%d\r\n" % len(command)
    for argument in command:
        yield from _bulk(argument)


def packed(*command: bytes) -> bytes:
    """A small command in the protocol."""
    return b"".join(command_parts(*command))


def answer_parts(answer: Any) -> Iterator[bytes]:
    """An answer in the protocol, in parts for `chunks`."""
    if isinstance(answer, Status):
        yield b"+%s\r\n" % answer.encode()
    elif isinstance(answer, bytes):
        yield from _bulk(answer)
    elif isinstance(answer, int):
        yield b":%d\r\n" % answer
    elif answer is None:
        yield b"$-1\r\n"
    elif isinstance(answer, list):
        yield b"*%d\r\n" % len(answer)
        for part in answer:
            yield from answer_parts(part)
    elif isinstance(answer, ReplyError):
        yield b"-%s\r\n" % str(answer).encode("utf-8", "replace").replace(b"\r\n", b" ")
    else:
        raise TypeError(f"no answer of RESP2: {type(answer).__name__}")


def encoded(answer: Any) -> bytes:
    """A small answer in the protocol."""
    return b"".join(answer_parts(answer))


def _bulk(value: bytes) -> Iterator[bytes]:
    if len(value) <= CHUNK:
        yield b"$%d\r\n%s\r\n" % (len(value), value)
    else:
        yield from (b"$%d\r\n" % len(value), value, b"\r\n")


def chunks(parts: Iterable[bytes]) -> Iterator[bytes | memoryview]:
    """The same bytes in chunks to send: small parts together, a large one in views of it."""
    together = bytearray()
    for part in parts:
        if together and len(together) + len(part) > CHUNK:
            yield bytes(together)
            together.clear()
        if len(part) > CHUNK:
            view = memoryview(part)
            yield from (view[start : start + CHUNK] for start in range(0, len(part), CHUNK))
        else:
            together += part
    if together:
        yield bytes(together)
