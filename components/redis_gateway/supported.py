"""Checks whether a cluster's Kubernetes has native sidecars, which the gateway needs. Only reads."""

import re

from components.cluster import Cluster, ClusterUnreachableError
from components.redis_gateway.manifests import FIRST_KUBERNETES


class UnsupportedKubernetesError(Exception):
    """The cluster's Kubernetes is too old for the gateway; the message has what to do."""


def check_kubernetes(cluster: Cluster) -> None:
    """Checks the API server's version against the minimum for the gateway.

    If the version cannot be read or parsed, the check passes: the next apply fails if Kubernetes is too old.

    Raises UnsupportedKubernetesError.
    """
    try:
        reported = cluster.request("GET", "/version") or {}
    except ClusterUnreachableError:
        return
    # Some clouds write `29+`.
    numbers = [re.match(r"\d+", str(reported.get(part, ""))) for part in ("major", "minor")]
    version = tuple(int(number[0]) for number in numbers if number)
    if len(version) == len(FIRST_KUBERNETES) and version < FIRST_KUBERNETES:
        raise UnsupportedKubernetesError(
            f"the Redis gateway is a native sidecar, which needs Kubernetes {_dotted(FIRST_KUBERNETES)} or later, and "
            f"this is {_dotted(version)}: raise it, or set redis.gateway.enabled to false"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
