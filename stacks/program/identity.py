"""Which Kubernetes cluster a stack is for: by the UID of the namespace kube-system, which every cluster has once.

The first update records it in the stack's outputs, later ones and previews compare it. So another context, or another
cluster behind the same address, changes nothing.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError, Connection, ForbiddenError
from components.kubernetes_cluster import KubernetesCluster
from stacks.settings import KubernetesSettings, StackSettings

OUTPUT = "kubernetes"
"""Output of a stack with its cluster: `{cluster: UID}`."""

_NAMESPACE = ("v1", "namespaces", None, "kube-system")

_SET = "set in ray-platform:kubernetes.cluster"


class OtherClusterError(ClusterUnreachableError):
    """The cluster that answers is not the stack's, or nobody knows; the text has the reason and what to do."""


def uid_of(cluster: Cluster, stack: StackSettings, last: Mapping[str, Any]) -> str | None:
    """The UID of the stack's cluster; None if this update records none, because the cluster cannot be read yet.

    `last`: the stack's outputs of its last update; empty before the first. A stack on the platform of another one
    reads nothing outside its tenants' namespaces, so it is compared only if the stack file has the UID.
    Raises OtherClusterError.
    """
    desired, source = _desired(stack.kubernetes, last)
    if desired is None and stack.platform:
        return None
    try:
        return _same(cluster, desired, source)
    except OtherClusterError:
        raise
    except ClusterUnreachableError as error:
        if desired is None:
            return None
        raise OtherClusterError(
            f"this stack is for the cluster whose namespace kube-system has UID {desired} ({source}), and "
            f"{cluster.connection} does not show which cluster it leads to: {error}. Nothing was changed. The account "
            "needs the right to get the namespace kube-system"
        ) from error


def recorded_uid(last: Mapping[str, Any]) -> str | None:
    """The UID in the stack's outputs of its last update."""
    uid: str | None = (last.get(OUTPUT) or {}).get("cluster")
    return uid


def connection_of(stack: StackSettings) -> Connection:
    """How a stack connects to its cluster."""
    return Connection(stack.kubernetes.context)


def cluster_of_stack(stack: StackSettings) -> Cluster:
    """The cluster in which a command reads the stack's objects, or changes them.

    Without the stack's outputs only the UID in the stack file can be compared, and an account of a tenant may not be
    allowed to read the live one. Raises OtherClusterError, and ClusterUnreachableError.
    """
    cluster = KubernetesCluster(connection_of(stack))
    if desired := stack.kubernetes.cluster:
        with suppress(ForbiddenError):
            _same(cluster, desired, _SET)
    return cluster


def _desired(kubernetes: KubernetesSettings, last: Mapping[str, Any]) -> tuple[str | None, str]:
    if kubernetes.cluster:
        return kubernetes.cluster, _SET
    return recorded_uid(last), "recorded by its last update"


def _same(cluster: Cluster, desired: str | None, source: str) -> str | None:
    """The UID of the namespace kube-system, None if there is none. Raises OtherClusterError, and
    ClusterUnreachableError."""
    body = cluster.get(*_NAMESPACE)
    live: str | None = body["metadata"]["uid"] if body else None
    if desired is None or live == desired:
        return live
    raise OtherClusterError(
        f"this stack is for another cluster: its namespace kube-system has UID {desired} ({source}), and "
        f"{cluster.connection} leads to a cluster with UID {live}. Nothing was changed. Use the right context; "
        "ray-platform:kubernetes.context sets it for everybody. To move the stack on purpose, set "
        f"ray-platform:kubernetes.cluster to {live} (docs/operations.md)"
    )
