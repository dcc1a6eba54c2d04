"""Checks an external Redis before RayClusters use it. Only reads.

Redis' client is imported where it is used: its import takes a sixth of the time of all imports, and few stacks need it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.cluster import Cluster, ClusterUnreachableError
from components.redis.connection import CA_KEY, PASSWORD_KEY, USERNAME_KEY
from components.redis.existing_server import ExternalSettings

if TYPE_CHECKING:
    import redis

_SECONDS = 3.0
"""Timeout of a connection and of an answer."""


class NotReachedError(Exception):
    """The Redis does not answer from this machine, so its settings are not known."""


class UnfitError(Exception):
    """The Redis is not suitable for RayClusters; the message has the reason and the change."""


@dataclass(frozen=True)
class Observed:
    role: str
    policy: str
    """Its `maxmemory-policy`."""
    cluster: bool
    """Whether it is a Redis Cluster."""


def look(external: ExternalSettings, secret: Mapping[str, str]) -> Observed:
    """Reads the properties of the Redis. `secret`: data of its Secret. Raises NotReachedError, and UnfitError if the
    Redis refuses the credentials."""
    import redis

    try:
        host, port = _master(external, secret) if external.sentinels else _split(external.address or "")
        with _client(host, port, external, secret) as client:
            info: dict[str, Any] = client.info("everything")
    except redis.AuthenticationError as error:
        message = f"refuses the username and password in Secret {external.secret_name!r}: {error}"
        raise UnfitError(message) from None
    except redis.ResponseError as error:
        raise UnfitError(f"answers: {error}. Its user needs the right to run INFO") from None
    except (redis.RedisError, OSError) as error:
        raise NotReachedError(str(error)) from None
    return Observed(str(info["role"]), str(info["maxmemory_policy"]), bool(info.get("cluster_enabled")))


def check(observed: Observed) -> None:
    """Raises UnfitError."""
    if problems := list(_problems(observed)):
        raise UnfitError("; ".join(problems))


def _problems(observed: Observed) -> Iterator[str]:
    if observed.cluster:
        yield "is a Redis Cluster, and Ray's tables have keys of several slots: use one with Sentinels, or a single one"
    if observed.role != "master":
        yield f"is a {observed.role}, which accepts no writes: name the master, or its Sentinels"
    if observed.policy != "noeviction":
        yield (
            f"has maxmemory-policy {observed.policy}, and a RayCluster whose tables are evicted does not start again: "
            "set it to noeviction"
        )


def _master(external: ExternalSettings, secret: Mapping[str, str]) -> tuple[str, int]:
    """The master's address from the first Sentinel that answers."""
    import redis

    errors = []
    for address in external.sentinels:
        try:
            with _client(*_split(address), external, secret) as client:
                named = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", external.master_name)
        except redis.AuthenticationError:
            raise
        except redis.ResponseError as error:
            raise UnfitError(f"has a Sentinel {address} that answers: {error}") from None
        except (redis.RedisError, OSError) as error:
            errors.append(f"{address}: {error}")
            continue
        if named is None:
            raise UnfitError(f"has no master {external.master_name!r} in its Sentinel {address}: set masterName")
        return str(named[0]), int(named[1])
    raise NotReachedError("; ".join(errors))


def _client(host: str, port: int, external: ExternalSettings, secret: Mapping[str, str]) -> redis.Redis:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return redis.Redis(
        host=host,
        port=port,
        username=secret.get(USERNAME_KEY) or None,
        password=secret.get(PASSWORD_KEY) or None,
        ssl=external.tls,
        ssl_ca_data=secret.get(CA_KEY) if external.tls else None,
        socket_timeout=_SECONDS,
        socket_connect_timeout=_SECONDS,
        protocol=2,
        decode_responses=True,
        retry=Retry(NoBackoff(), 0),
    )


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


@dataclass(frozen=True)
class Seen:
    secret: dict[str, str] | None
    """Data of its Secret; None: it could not be read, or the cluster does not exist yet."""
    warning: str | None
    """Why the Redis could not be checked."""


def see(external: ExternalSettings, cluster: Cluster, namespace: str) -> Seen:
    """Checks the Redis with the Secret in `secretNamespace`, or else in `namespace`, a tenant's.

    Raises UnfitError if the Redis is not suitable, or if the Secret to copy cannot be read.
    """
    if not cluster.exists:
        return Seen(None, None)
    name, where = external.secret_name, external.secret_namespace or namespace
    try:
        live = cluster.get("v1", "secrets", where, name)
        reason = f"there is no Secret {where}/{name}"
    except ClusterUnreachableError as error:
        live, reason = None, f"Secret {where}/{name} cannot be read: {error}"
    if live is None:
        if external.secret_namespace:
            raise UnfitError(f"has no credentials: {reason}")
        return Seen(None, reason)
    secret = {key: base64.b64decode(value).decode().strip() for key, value in (live.get("data") or {}).items()}
    lacking = [key for key in ("username", "password", *(["ca.crt"] if external.tls else [])) if key not in secret]
    if lacking:
        raise UnfitError(f"has no {' and no '.join(lacking)} in Secret {where}/{name}: add it there")
    if not external.verify:
        return Seen(secret, None)
    try:
        check(look(external, secret))
    except NotReachedError as error:
        return Seen(secret, f"it does not answer from here: {error}".rstrip("."))
    return Seen(secret, None)
