"""What the parts of a Redis are called. Pure functions and constants."""

NAME = "ray-redis"
"""Of the StatefulSet, of the Service of its nodes, and of what has no name of its own."""

SENTINELS = "ray-redis-sentinels"
"""Service of its Sentinels."""

USERS_SECRET = "ray-redis-users"  # noqa: S105 (a Secret's name)
"""Secret with the users' file and the passwords of the nodes' own user."""

CERTIFICATE_SECRET = "ray-redis-tls"  # noqa: S105 (a Secret's name)
"""Secret with the certificate of all nodes."""

SCRIPTS = "ray-redis-scripts"
"""ConfigMap with the scripts of its containers."""

BACKUP = "ray-redis-backup"
"""CronJob that copies the data, and the volume of the copies."""

RESTORE = "ray-redis-restore"
"""CronJob that never runs by itself, and of which a Job is made to put a copy back."""

LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/part-of": "ray-platform"}
"""Of all objects."""

SELECTOR = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "node"}
"""Of the nodes' pods."""

MASTER_NAME = "mymaster"
"""What the Sentinels call the master, as in Redis' own documentation."""

REDIS_PORT = 6379
SENTINEL_PORT = 26379
EXPORTER_PORT = 9121


def host(pod: str, namespace: str, domain: str) -> str:
    """A node's name in DNS, the same for as long as there is the StatefulSet. `domain`: the cluster's.

    It is whole, because a Sentinel stands still while it looks a name up, and does so for each message of another: a
    name that ends with `.svc` is asked for with all ends of the search path in turn.
    """
    return f"{pod}.{NAME}.{namespace}.svc.{domain}"


def hosts(namespace: str, nodes: int, domain: str) -> tuple[str, ...]:
    """The names of all nodes."""
    return tuple(host(f"{NAME}-{index}", namespace, domain) for index in range(nodes))


def names_of_nodes(namespace: str, nodes: int, domain: str) -> list[str]:
    """All names that the nodes are called by, which their certificate has to have."""
    whole = hosts(namespace, nodes, domain)
    short = [name.removesuffix(f".{domain}") for name in whole]
    return [*whole, *short, *(f"{service}.{namespace}.svc" for service in (NAME, SENTINELS)), "localhost"]
