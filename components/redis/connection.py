"""How a RayCluster reaches its Redis: what who provides a Redis tells who makes RayClusters. Knows no Pulumi."""

from dataclasses import dataclass

from .names import MASTER_NAME, REDIS_PORT, SENTINEL_PORT, SENTINELS, hosts
from .settings import RedisSettings

SECRET = "ray-redis"  # noqa: S105 (a Secret's name)
"""Secret in a tenant's namespace with what its RayClusters show to Redis."""

USERNAME_KEY = "username"
"""Its key with the user of Redis."""

PASSWORD_KEY = "password"  # noqa: S105 (a key of the Secret)
"""Its key with the password."""

PASSWORDS_KEY = "passwords"
"""Its key with all passwords that Redis takes at present, the newest first, one per line: several during a rotation."""

CA_KEY = "ca.crt"
"""Its key with the authority of the certificates of Redis, where Redis speaks TLS."""


@dataclass(frozen=True)
class RedisConnection:
    """Where a tenant's Redis is, and how one speaks to it."""

    nodes: tuple[str, ...]
    """`HOST:PORT` of all Sentinels; without Sentinels, of Redis itself."""

    master_name: str | None
    """What the Sentinels call the master; None: there are none."""

    replicas: int
    """Replicas beside the master."""

    ports: tuple[int, ...] = (REDIS_PORT, SENTINEL_PORT)
    """Ports of Redis and its Sentinels."""

    service: str | None = None
    """`HOST:PORT` behind which all nodes are, for those who can be told one address only; None: the first node."""

    namespace: str | None = None
    """Namespace of its pods; None: it is outside the cluster, or nobody says where."""

    cidrs: tuple[str, ...] = ()
    """Its addresses, where it is outside the cluster and somebody says them."""

    tls: bool = False
    """Whether nodes and Sentinels are spoken to with TLS."""

    secret: str = SECRET
    """Name of the Secret in the tenant's namespace, with the keys that stand above."""

    passwords_key: str = PASSWORDS_KEY
    """Its key with all passwords: a Secret that the tenant's people made has one password alone."""

    @property
    def address(self) -> str:
        """`HOST:PORT` for those who can be told one address only."""
        return self.service or self.nodes[0]


def connection(settings: RedisSettings, namespace: str) -> RedisConnection:
    """How the RayClusters of a tenant reach Redis. `namespace`: of the Redis, which is the tenant's own with
    `perTenant`."""
    external = settings.external
    if external:
        nodes = external.sentinels or ((external.address,) if external.address else ())
        ports = tuple(sorted({int(node.rpartition(":")[2]) for node in nodes}))
        return RedisConnection(
            nodes=nodes,
            master_name=external.master_name if external.sentinels else None,
            replicas=external.replicas,
            ports=ports if not external.sentinels else tuple(sorted({REDIS_PORT, *ports})),
            namespace=external.namespace,
            cidrs=external.cidrs,
            tls=external.tls,
            secret=SECRET if external.secret_namespace else external.secret_name,
            passwords_key=PASSWORDS_KEY if external.secret_namespace else PASSWORD_KEY,
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
