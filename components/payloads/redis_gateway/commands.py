"""The commands that the gateway accepts, and how it may repeat each of them.

They are the commands of Ray's Redis client (Ray 2.60: src/ray/gcs/store_client/redis_context.cc and
redis_store_client.cc, and the MONITOR output of a real GCS and of `cleanup_redis_storage`), and a few for inspection by
hand. The gateway refuses all others: blocking commands, subscriptions and transactions cannot move to another master.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Repeat(Enum):
    """How the gateway repeats a command on a new master."""

    HARMLESS = auto()
    """It reads: the gateway sends it again, and returns the answer of the new master."""

    JOURNALED = auto()
    """It writes: the journal on a master shows whether the master has the write, and its answer."""

    CURSOR = auto()
    """It reads from a cursor, which is not valid on another master: the scan restarts there."""


@dataclass(frozen=True)
class Kind:
    """Properties of a command."""

    repeat: Repeat
    arguments: tuple[int, int | None]
    """Minimum and maximum number of arguments after the name; None: unlimited."""

    cursor: int = 0
    """Index of the cursor, counted from the name."""

    all_keys: bool = False
    """Whether every argument is a key, not only the first."""


_READ, _WRITE, _SCAN = Repeat.HARMLESS, Repeat.JOURNALED, Repeat.CURSOR

COMMANDS: dict[bytes, Kind] = {
    b"PING": Kind(_READ, (0, 1)),
    b"INFO": Kind(_READ, (0, None)),
    b"HGET": Kind(_READ, (2, 2)),
    b"HMGET": Kind(_READ, (2, None)),
    b"HEXISTS": Kind(_READ, (2, 2)),
    b"HGETALL": Kind(_READ, (1, 1)),
    b"HLEN": Kind(_READ, (1, 1)),
    b"EXISTS": Kind(_READ, (1, None)),
    b"DBSIZE": Kind(_READ, (0, 0)),
    b"HSCAN": Kind(_SCAN, (2, None), cursor=2),
    b"SCAN": Kind(_SCAN, (1, None), cursor=1),
    b"HSET": Kind(_WRITE, (3, None)),
    b"HSETNX": Kind(_WRITE, (3, 3)),
    b"HDEL": Kind(_WRITE, (2, None)),
    b"INCRBY": Kind(_WRITE, (2, 2)),
    b"DEL": Kind(_WRITE, (1, None), all_keys=True),
    b"UNLINK": Kind(_WRITE, (1, None), all_keys=True),
}

MOST_ARGUMENTS = 7000
"""Of one command. The script of the journal passes them on the Lua stack, which holds 8,000; Ray sends at most 1,000 at
once (maximum_gcs_storage_operation_batch_size)."""


class RefusedError(Exception):
    """A command that the gateway does not accept; the text is an error of the Redis protocol."""


def kind_of(command: Sequence[bytes]) -> Kind:
    """The properties of a command.

    Raises:
        RefusedError: The gateway does not know it, or it has too few or too many arguments.
    """
    name = command[0].upper()
    kind = COMMANDS.get(name)
    shown = name[:32].decode("ascii", "replace")
    if kind is None:
        known = ", ".join(sorted(known.decode() for known in COMMANDS))
        raise RefusedError(
            f"ERR redis-gateway does not take {shown!r}: what a repeat of it means is unknown; it takes {known}"
        )
    fewest, most = kind.arguments
    given = len(command) - 1
    if not fewest <= given <= (MOST_ARGUMENTS if most is None else most):
        raise RefusedError(f"ERR wrong number of arguments for '{shown.lower()}' command: {given}")
    return kind
