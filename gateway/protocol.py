"""The part of the Redis protocol (RESP2) for clients, commands and answers; and how both are sent.

hiredis parses the answers of nodes, but not commands: anyone who can connect sends them, and hiredis allocates as many
arguments as the header states. This module reads commands within limits.

A value may have hundreds of MiB, and the container's memory is limited. So a large value is never copied as a whole: it
is read into the object that is kept, and sent in chunks of that object.
"""

from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any, cast

import hiredis

CHUNK = 256 << 10
"""Bytes that are read or sent at once."""

LONGEST_ANONYMOUS = 16 << 10
"""Largest command in bytes before authentication (as Redis: the limit of unauthenticated connections)."""

MOST_ANONYMOUS = 10
"""Most arguments of such a command."""


class ProtocolError(Exception):
    """A client violates the protocol or its limits; its connection must be closed."""


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


def command_parts(*command: bytes) -> Iterator[bytes]:
    """A command in the protocol, in parts for `chunks`."""
    if sum(map(len, command)) <= CHUNK:
        # The type stub of hiredis accepts only tuples of one element.
        yield hiredis.pack_command(cast(Any, command))
        return
    yield b"*%d\r\n" % len(command)
    for argument in command:
        yield from _bulk(argument)


def packed(*command: bytes) -> bytes:
    """A small command in the protocol."""
    return b"".join(command_parts(*command))


def answer_parts(answer: Any) -> Iterator[bytes]:
    """An answer in the protocol, in parts for `chunks`."""
    match answer:
        case Status():
            yield b"+%s\r\n" % answer.encode()
        case bytes():
            yield from _bulk(answer)
        case int():
            yield b":%d\r\n" % answer
        case None:
            yield b"$-1\r\n"
        case list():
            yield b"*%d\r\n" % len(answer)
            for part in answer:
                yield from answer_parts(part)
        case hiredis.ReplyError():
            yield b"-%s\r\n" % str(answer).encode("utf-8", "replace").replace(b"\r\n", b" ")
        case _:
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
