"""Blocks the deletion of a queue in use. Pods of a gang without its queue are never scheduled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from components.cluster import AMBIENT, Cluster, ClusterUnreachableError, Connection
from components.dynamic import Resource
from components.guard import GuardProvider, InUseError, kuberay_objects, named
from components.kubernetes_cluster import cluster_of
from components.tenant.guard import has_ended

_KINDS = ("rayclusters", "rayjobs", "rayservices")


class _Provider(GuardProvider):
    def refuse(self, props: Mapping[str, Any]) -> None:
        refuse_while_used(cluster_of(props), props["queue"], props["label"])


def refuse_while_used(cluster: Cluster, queue: str, label: str) -> None:
    """Raises InUseError while objects of KubeRay name the queue by that label, or if that is not known."""
    try:
        naming = [
            body
            for body in kuberay_objects(cluster, _KINDS)
            if (body["metadata"].get("labels") or {}).get(label) == queue
        ]
    except ClusterUnreachableError as error:
        raise InUseError(
            f"queue {queue!r} is not deleted, because it cannot be determined what uses it: {error}"
        ) from None
    if used := [body for body in naming if not has_ended(body)]:
        raise InUseError(
            f"queue {queue!r} is not deleted, because it is used by {named(used)}, which would wait forever. Set "
            "another queue for these, or delete them, then run the command again"
        )


@dataclass(frozen=True)
class QueueGuardArgs:
    """Arguments of QueueGuard."""

    queue: str

    label: str
    """Label by which RayClusters name it."""

    connection: Connection = AMBIENT


class QueueGuard(Resource, module="ray-platform", name="QueueGuard"):
    """Is deleted before the queue that it depends on. The deletion fails while a RayCluster, RayJob or RayService of
    any namespace names the queue, also one that this stack did not create.
    """

    def __init__(self, name: str, args: QueueGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        inputs = {"queue": args.queue, "label": args.label, **args.connection.inputs()}
        super().__init__(_Provider(), name, inputs, opts)
