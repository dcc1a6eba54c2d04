"""The names of the objects of a Redis. Pure functions and constants."""

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
    """The names of all nodes."""
    return tuple(host(f"{NAME}-{index}", namespace, domain) for index in range(nodes))


def names_of_nodes(namespace: str, nodes: int, domain: str) -> list[str]:
    """All names of the nodes that clients use. The certificate must contain them."""
    whole = hosts(namespace, nodes, domain)
    short = [name.removesuffix(f".{domain}") for name in whole]
    return [*whole, *short, *(f"{service}.{namespace}.svc" for service in (NAME, SENTINELS)), "localhost"]
