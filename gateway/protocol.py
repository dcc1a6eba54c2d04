"""The part of the Redis protocol (RESP2) for clients: commands and answers.

hiredis parses the answers of nodes, but not commands: anyone who can connect sends them, and hiredis allocates as many
arguments as the header states. This module reads commands within limits.
"""

from asyncio import IncompleteReadError, LimitOverrunError, StreamReader
from typing import Any

import hiredis

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
        for _ in range(count):
            length = await _number(reader, b"$")
            longest -= length
            if length < 0 or longest < 0:
                raise ProtocolError("a command is longer than max_command_bytes, or has a negative length")
            command.append((await reader.readexactly(length + 2))[:-2])
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


def encoded(answer: Any) -> bytes:
    """An answer in the protocol."""
    match answer:
        case Status():
            return b"+%s\r\n" % answer.encode()
        case bytes():
            return b"$%d\r\n%s\r\n" % (len(answer), answer)
        case int():
            return b":%d\r\n" % answer
        case None:
            return b"$-1\r\n"
        case list():
            return b"*%d\r\n%s" % (len(answer), b"".join(map(encoded, answer)))
        case hiredis.ReplyError():
            return b"-%s\r\n" % str(answer).encode("utf-8", "replace").replace(b"\r\n", b" ")
        case _:
            raise TypeError(f"no answer of RESP2: {type(answer).__name__}")
