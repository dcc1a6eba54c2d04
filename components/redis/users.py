"""Who may do what in Redis, as ACL files say it. Pure functions.

A tenant's user is called as its namespace, and reaches keys that begin with it. RayClusters keep their tables
in keys `RAY<storage namespace>@<table>`, and a storage namespace begins with the namespace and a dot.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

NODES_USER = "_nodes"
"""User of the nodes and Sentinels themselves, and of the probes. No namespace has an underscore in its name."""

EXPORTER_USER = "_exporter"

_COMMANDS = (
    "+auth +ping +info +role +wait +eval +hget +hmget +hexists +hgetall +hlen +exists +dbsize +hscan +scan "
    "+hset +hsetnx +hdel +incrby +del +unlink +expire"
)
"""What Ray sends, and the gateway for it (docs/redis-gateway.md, The commands)."""

_SENTINEL_COMMANDS = "+auth +ping +info +subscribe +sentinel|masters +sentinel|master +sentinel|get-master-addr-by-name"
"""What is needed to find the master: by the gateway, and by Ray itself, which asks for INFO and the first of all
masters (src/ray/gcs/store_client/redis_context.cc, ConnectRedisSentinel)."""

_RELOADER = "off ~* &* +@all"
"""The user without a name, whom nobody can be. As it Redis reads its own AOF at start: what it may not do is left out
of each transaction there, with an error in the log alone, and all that scripts have written are transactions
(Redis 7.0, multi.c: execCommand)."""

_EXPORTER_COMMANDS = "+ping +info +client|setname +slowlog +latency"
"""What github.com/oliver006/redis_exporter asks for that tells no setting."""

Passwords = Mapping[str, Sequence[str]]
"""The passwords of each user."""


def redis_acl(passwords: Passwords) -> str:
    """The ACL file of a node. `passwords`: of the nodes' user, of the exporter's if there is one, and of each tenant's
    namespace."""
    return _file(_RELOADER, ((user, _may(user), known) for user, known in passwords.items()))


def sentinel_acl(passwords: Passwords) -> str:
    """The ACL file of a Sentinel. Ray shows a Sentinel the same user and password as the node it names."""
    return _file(
        "off",
        (
            (user, "&* +@all" if user == NODES_USER else f"&* -@all {_SENTINEL_COMMANDS}", known)
            for user, known in passwords.items()
            if user != EXPORTER_USER
        ),
    )


def newest_first(passwords: Sequence[str]) -> str:
    """A file with all passwords of a user, one per line."""
    return "".join(f"{password}\n" for password in reversed(passwords))


def _may(user: str) -> str:
    if user == NODES_USER:
        return "~* &* +@all"
    if user == EXPORTER_USER:
        return f"resetchannels -@all {_EXPORTER_COMMANDS}"
    return f"~RAY{user}.* ~DUMMY ~redis-gateway:{user}.* resetchannels -@all {_COMMANDS}"


def _file(default: str, users: Iterable[tuple[str, str, Sequence[str]]]) -> str:
    lines = [f"user {name} on {_hashes(passwords)} {rights}" for name, rights, passwords in users]
    return "\n".join([f"user default {default}", *lines, ""])


def _hashes(passwords: Sequence[str]) -> str:
    """Redis is told no password, only their digests."""
    return " ".join(f"#{hashlib.sha256(password.encode()).hexdigest()}" for password in passwords)
