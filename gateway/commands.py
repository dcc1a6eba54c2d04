"""The commands that the gateway takes, and what sending one a second time means.

They are those of Ray's Redis client (Ray 2.60: src/ray/gcs/store_client/redis_context.cc and redis_store_client.cc, and
what MONITOR shows of a real GCS and of `cleanup_redis_storage`), and a few for looking around by hand. Everything else
is refused: blocking commands, subscriptions and transactions cannot be moved from one master to another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Repeat(Enum):
    """What a second sending means, and so what the gateway does about it."""

    HARMLESS = auto()
    """It reads: sent again, the answer is the new master's."""

    JOURNALED = auto()
    """It writes: whether a master has it, and what it answered, is in the journal on that master."""

    CURSOR = auto()
    """It reads on from a cursor, which means nothing on another master: the scan begins anew there."""


@dataclass(frozen=True)
class Kind:
    """A command as the gateway sees it."""

    repeat: Repeat
    arguments: tuple[int, int | None]
    """Fewest and most arguments after the name; a bound of None is none."""

    cursor: int = 0
    """Where the cursor stands, counted from the name."""

    all_keys: bool = False
    """Every argument is a key, not only the first."""


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
"""Of one command. The journal's script hands them on as a Lua stack, which holds 8,000; Ray sends at most 1,000 at once
(maximum_gcs_storage_operation_batch_size)."""


class RefusedError(Exception):
    """A command that the gateway does not take; the text is an error of the Redis protocol."""


def kind_of(command: Sequence[bytes]) -> Kind:
    """What a command is.

    Raises:
        RefusedError: The gateway does not know it, or its arguments are too few or too many.
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
