"""Which Kubernetes cluster a stack is for: by the UID of the namespace kube-system, which every cluster has once.

The first update records it in the stack's outputs, later ones and previews compare it. So another context, or another
cluster behind the same address, changes nothing.
"""

from collections.abc import Mapping
from typing import Any

from components.cluster import ClusterUnreachableError, request

from .settings import KubernetesSettings, StackSettings

OUTPUT = "kubernetes"
"""Output of a stack with its cluster: `{cluster: UID}`."""

_PATH = "/api/v1/namespaces/kube-system"


class OtherClusterError(Exception):
    """The cluster is not the stack's, or nobody knows; the text has the reason and what to do."""


def cluster_of(stack: StackSettings, last: Mapping[str, Any]) -> str | None:
    """The UID of the stack's cluster; None if this update records none, because the cluster cannot be read yet.

    `last`: the stack's outputs of its last update; those of an older release have no UID. A stack on the platform of
    another one reads nothing outside its tenants' namespaces, so it is compared only if the stack file has the UID.
    Raises OtherClusterError.
    """
    desired, source = _desired(stack.kubernetes, last)
    if desired is None and stack.platform:
        return None
    return compared(stack.kubernetes.context, desired, source)


def _desired(kubernetes: KubernetesSettings, last: Mapping[str, Any]) -> tuple[str | None, str]:
    if kubernetes.cluster:
        return kubernetes.cluster, "set in ray-platform:kubernetes.cluster"
    recorded = (last.get(OUTPUT) or {}).get("cluster")
    return recorded, "recorded by its last update"


def compared(context: str | None, desired: str | None, source: str) -> str | None:
    """The UID of the cluster of a context; None if it cannot be read and none is desired. Raises OtherClusterError."""
    by = f"context {context!r}" if context else "the current context"
    try:
        body = request(context, "GET", _PATH)
    except ClusterUnreachableError as error:
        if desired is None:
            return None
        raise OtherClusterError(
            f"this stack is for the cluster whose namespace kube-system has UID {desired} ({source}), and {by} does "
            f"not show which cluster it leads to: {error}. Nothing was changed. The account needs the right to get the "
            "namespace kube-system"
        ) from error
    live: str | None = body["metadata"]["uid"] if body else None
    if desired is None or live == desired:
        return live
    raise OtherClusterError(
        f"this stack is for another cluster: its namespace kube-system has UID {desired} ({source}), and {by} leads to "
        f"a cluster with UID {live}. Nothing was changed. Use the right context; ray-platform:kubernetes.context sets "
        f"it for everybody. To move the stack on purpose, set ray-platform:kubernetes.cluster to {live} "
        "(docs/operations.md)"
    )
