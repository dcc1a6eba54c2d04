"""The interface between Redis and RayClusters: names of its objects, how a RayCluster connects to it, and its users.

Pure functions and constants. A tenant's user has the name of its namespace, and can access keys that begin with it.
RayClusters store their tables in keys `RAY<storage namespace>@<table>`, and a storage namespace begins with the
namespace and a dot.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.redis.settings import RedisSettings

NAME = "ray-redis"
"""Name of the StatefulSet, of the Service of its nodes, and of all objects without another name."""

SENTINELS = "ray-redis-sentinels"
"""Service of its Sentinels."""

USERS_SECRET = "ray-redis-users"  # noqa: S105 (a Secret's name)
"""Secret with the users' file and the passwords of the nodes' own user."""

CERTIFICATE_SECRET = "ray-redis-tls"  # noqa: S105 (a Secret's name)
"""Secret with the certificate of all nodes."""

SCRIPTS = "ray-redis-scripts"
"""ConfigMap with the scripts of its containers."""

BACKUP = "ray-redis-backup"
"""CronJob that backs up the data, and the volume of the backups."""

RESTORE = "ray-redis-restore"
"""Suspended CronJob, from which a Job is created to restore a backup."""

LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "ray-platform"}
"""Labels of all objects."""

SELECTOR = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "node"}
"""Labels of the nodes' pods."""

MASTER_NAME = "mymaster"
"""The Sentinels' name of the master, as in Redis' own documentation."""

REDIS_PORT = 6379
SENTINEL_PORT = 26379
EXPORTER_PORT = 9121


def host(pod: str, namespace: str, domain: str) -> str:
    """A node's DNS name, which is stable while the StatefulSet exists. `domain`: the cluster's.

    The name is fully qualified. A Sentinel blocks while it resolves a name, and it does so for each message of another
    Sentinel. A name that ends with `.svc` would be tried with each suffix of the search path.
    """
    return f"{pod}.{NAME}.{namespace}.svc.{domain}"


def hosts(namespace: str, nodes: int, domain: str) -> tuple[str, ...]:
    return tuple(host(f"{NAME}-{index}", namespace, domain) for index in range(nodes))


def names_of_nodes(namespace: str, nodes: int, domain: str) -> list[str]:
    """All names of the nodes that clients use. The certificate must contain them."""
    whole = hosts(namespace, nodes, domain)
    short = [name.removesuffix(f".{domain}") for name in whole]
    return [*whole, *short, *(f"{service}.{namespace}.svc" for service in (NAME, SENTINELS)), "localhost"]


SECRET = "ray-redis"  # noqa: S105 (a Secret's name)
"""Secret in a tenant's namespace with the Redis credentials of its RayClusters."""

USERNAME_KEY = "username"
"""Its key with the user of Redis."""

PASSWORD_KEY = "password"  # noqa: S105 (a key of the Secret)
"""Its key with the password."""

PASSWORDS_KEY = "passwords"
"""Its key with all passwords that Redis accepts, the newest first, one per line; several during a rotation."""

GATEWAY_PASSWORD_KEY = "gateway-password"  # noqa: S105 (a key of the Secret)
"""Its key with the password for the gateway, which Ray has where there is one. Redis does not accept it."""

GATEWAY_PASSWORDS_KEY = "gateway-passwords"
"""Its key with the passwords that the gateway accepts, like `passwords`."""

CA_KEY = "ca.crt"
"""Its key with the certificate authority of Redis, if Redis uses TLS."""


@dataclass(frozen=True)
class RedisConnection:
    """The address of a tenant's Redis, and how to connect to it."""

    nodes: tuple[str, ...]
    """`HOST:PORT` of all Sentinels; without Sentinels, of Redis itself."""

    master_name: str | None
    """The Sentinels' name of the master; None: there are no Sentinels."""

    replicas: int
    """Replicas beside the master."""

    ports: tuple[int, ...] = (REDIS_PORT, SENTINEL_PORT)
    """Ports of Redis and its Sentinels."""

    service: str | None = None
    """`HOST:PORT` of a Service for all nodes, for clients that accept one address only; None: the first node."""

    namespace: str | None = None
    """Namespace of its pods; None: it is outside the cluster, or the namespace is not known."""

    cidrs: tuple[str, ...] = ()
    """Its addresses, if it is outside the cluster and they are known."""

    tls: bool = False
    """Whether nodes and Sentinels use TLS."""

    secret: str = SECRET
    """Name of the Secret in the tenant's namespace, with the keys above."""

    passwords_key: str = PASSWORDS_KEY
    """The Secret's key with all passwords; a Secret that the tenant created has one password only."""

    gateway_password_key: str = GATEWAY_PASSWORD_KEY
    gateway_passwords_key: str = GATEWAY_PASSWORDS_KEY
    """The keys with the passwords for the gateway; in a Secret that the tenant created that of Redis."""

    @property
    def address(self) -> str:
        """`HOST:PORT` for clients that accept one address only."""
        return self.service or self.nodes[0]


def connection(settings: RedisSettings, namespace: str) -> RedisConnection:
    """How the RayClusters of a tenant connect to Redis. `namespace`: of the Redis, which is the tenant's own with
    `perTenant`."""
    external = settings.external
    if external:
        nodes = external.sentinels or ((external.address,) if external.address else ())
        ports = tuple(sorted({int(node.rpartition(":")[2]) for node in nodes}))
        ours = external.secret_namespace is not None
        return RedisConnection(
            nodes=nodes,
            master_name=external.master_name if external.sentinels else None,
            replicas=external.replicas,
            ports=ports if not external.sentinels else tuple(sorted({REDIS_PORT, *ports})),
            namespace=external.namespace,
            cidrs=external.cidrs,
            tls=external.tls,
            secret=SECRET if ours else external.secret_name,
            passwords_key=PASSWORDS_KEY if ours else PASSWORD_KEY,
            gateway_password_key=GATEWAY_PASSWORD_KEY if ours else PASSWORD_KEY,
            gateway_passwords_key=GATEWAY_PASSWORDS_KEY if ours else PASSWORD_KEY,
        )
    managed = settings.mode == "managed"
    port = SENTINEL_PORT if managed else REDIS_PORT
    return RedisConnection(
        nodes=tuple(f"{host}:{port}" for host in hosts(namespace, settings.nodes, settings.cluster_domain)),
        master_name=MASTER_NAME if managed else None,
        replicas=settings.nodes - 1,
        ports=(REDIS_PORT, SENTINEL_PORT) if managed else (REDIS_PORT,),
        service=f"{SENTINELS}.{namespace}.svc:{SENTINEL_PORT}" if managed else None,
        namespace=namespace,
        tls=settings.tls is not None,
    )


NODES_USER = "_nodes"
"""User of the nodes, the Sentinels and the probes. Names of namespaces have no underscore."""

EXPORTER_USER = "_exporter"

_COMMANDS = (
    "+auth +ping +info +role +wait +eval +get +hget +hmget +hexists +hgetall +hlen +exists +dbsize +hscan +scan "
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


def gateway_password(password: str) -> str:
    """The password for the gateway, made from one of Redis, which cannot be found from it. So both change together, and
    there is nothing more to keep."""
    return hmac.new(password.encode(), b"redis-gateway", hashlib.sha256).hexdigest()


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
