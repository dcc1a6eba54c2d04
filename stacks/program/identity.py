"""Which Kubernetes cluster a stack is for: by the UID of the namespace kube-system, which every cluster has once.

The first update records it in the stack's outputs, later ones and previews compare it. So another context, or another
cluster behind the same address, changes nothing.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from components.client import ClusterUnreachableError, ForbiddenError, request
from stacks.settings import KubernetesSettings, StackSettings

OUTPUT = "kubernetes"
"""Output of a stack with its cluster: `{cluster: UID}`."""

_PATH = "/api/v1/namespaces/kube-system"

_SET = "set in ray-platform:kubernetes.cluster"


class OtherClusterError(ClusterUnreachableError):
    """The cluster that answers is not the stack's, or nobody knows; the text has the reason and what to do."""


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


def context_of(stack: StackSettings, context: str | None = None) -> str | None:
    """The context in which a command looks at the stack's cluster, or changes it: that of the stack file, unless
    `context` is another one.

    Without the stack's outputs only the UID in the stack file can be compared, and an account of a tenant may not be
    allowed to read the live one. Raises OtherClusterError, and ClusterUnreachableError.
    """
    used = context or stack.kubernetes.context
    if desired := stack.kubernetes.cluster:
        with suppress(ForbiddenError):
            _same(used, request(used, "GET", _PATH), desired, _SET)
    return used


def _desired(kubernetes: KubernetesSettings, last: Mapping[str, Any]) -> tuple[str | None, str]:
    if kubernetes.cluster:
        return kubernetes.cluster, _SET
    recorded = (last.get(OUTPUT) or {}).get("cluster")
    return recorded, "recorded by its last update"


def compared(context: str | None, desired: str | None, source: str) -> str | None:
    """The UID of the cluster of a context; None if it cannot be read and none is desired. Raises OtherClusterError."""
    try:
        body = request(context, "GET", _PATH)
    except ClusterUnreachableError as error:
        if desired is None:
            return None
        raise OtherClusterError(
            f"this stack is for the cluster whose namespace kube-system has UID {desired} ({source}), and "
            f"{named(context)} does not show which cluster it leads to: {error}. Nothing was changed. The account "
            "needs the right to get the namespace kube-system"
        ) from error
    return _same(context, body, desired, source)


def _same(context: str | None, body: Mapping[str, Any] | None, desired: str | None, source: str) -> str | None:
    """The UID of the namespace kube-system, None if there is none. Raises OtherClusterError."""
    live: str | None = body["metadata"]["uid"] if body else None
    if desired is None or live == desired:
        return live
    raise OtherClusterError(
        f"this stack is for another cluster: its namespace kube-system has UID {desired} ({source}), and "
        f"{named(context)} leads to a cluster with UID {live}. Nothing was changed. Use the right context; "
        "ray-platform:kubernetes.context sets it for everybody. To move the stack on purpose, set "
        f"ray-platform:kubernetes.cluster to {live} (docs/operations.md)"
    )


def named(context: str | None) -> str:
    """A context for a message."""
    return f"context {context!r}" if context else "the current context"
