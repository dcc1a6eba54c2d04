"""The ACL files of Redis: users and their rights. Pure functions.

A tenant's user has the name of its namespace, and can access keys that begin with it. RayClusters store their tables
in keys `RAY<storage namespace>@<table>`, and a storage namespace begins with the namespace and a dot.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

NODES_USER = "_nodes"
"""User of the nodes, the Sentinels and the probes. Names of namespaces have no underscore."""

EXPORTER_USER = "_exporter"

_COMMANDS = (
    "+auth +ping +info +role +wait +eval +hget +hmget +hexists +hgetall +hlen +exists +dbsize +hscan +scan "
    "+hset +hsetnx +hdel +incrby +del +unlink +expire"
)
"""The commands of Ray and of the gateway (docs/redis-gateway.md, The commands)."""

_SENTINEL_COMMANDS = "+auth +ping +info +subscribe +sentinel|masters +sentinel|master +sentinel|get-master-addr-by-name"
"""The commands to find the master. The gateway uses them; Ray itself sends INFO and reads the first of all masters
(src/ray/gcs/store_client/redis_context.cc, ConnectRedisSentinel)."""

_RELOADER = "off ~* &* +@all"
"""Rights of the default user, as which nobody can log in. Redis loads its AOF at start as this user. It would omit
forbidden commands from transactions, with only an error in its log, and all writes of scripts are transactions (Redis
7.0, multi.c: execCommand)."""

_EXPORTER_COMMANDS = "+ping +info +client|setname +slowlog +latency"
"""The commands of github.com/oliver006/redis_exporter that reveal no settings."""

Passwords = Mapping[str, Sequence[str]]
"""The passwords of each user."""


def redis_acl(passwords: Passwords) -> str:
    """The ACL file of a node. `passwords`: of the nodes' user, of the exporter's user if there is one, and of each
    tenant's user."""
    return _file(_RELOADER, ((user, _may(user), known) for user, known in passwords.items()))


def sentinel_acl(passwords: Passwords) -> str:
    """The ACL file of a Sentinel. Ray uses the same user and password for a Sentinel as for Redis."""
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
    """The digests of passwords: ACL files contain no passwords."""
    return " ".join(f"#{hashlib.sha256(password.encode()).hexdigest()}" for password in passwords)
