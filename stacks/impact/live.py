"""The RayClusters of namespaces, and their pods, as they run. Only reads."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import kubernetes

from components.cluster import connect, read
from components.ray_cluster.pods import CLUSTER_LABEL

from ..stack_file import PROJECT
from .ray_pods import Known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GROUP_LABEL = "ray.io/group"
_TYPE_LABEL = "ray.io/node-type"
_OF_RAY = ("head", "worker")
"""Not the pod that cleans up in Redis (ray-operator/apis/ray/v1/raycluster_types.go: RayNodeType)."""


def live(context: str | None, namespaces: Iterable[str], release: str) -> dict[str, Known]:
    """The RayClusters by `<namespace>/<name>`, but those that belong to a RayJob or RayService.

    `release`: minor version of the operator.
    Raises ClusterUnreachableError where the API server does not answer or refuses.
    """
    api = connect(context)
    objects, core = kubernetes.client.CustomObjectsApi(api), kubernetes.client.CoreV1Api(api)
    found = {}
    for namespace in namespaces:
        there = read(objects.list_namespaced_custom_object, "ray.io", "v1", namespace, "rayclusters") or {}
        pods = read(core.list_namespaced_pod, namespace, label_selector=CLUSTER_LABEL) or {}
        for body in there.get("items", ()):
            if not body["metadata"].get("ownerReferences"):
                name = body["metadata"]["name"]
                running = Counter(_groups(pods.get("items", ()), name))
                found[f"{namespace}/{name}"] = Known(body, running, release)
    return found


def made_by(known: Known, stack: str) -> bool:
    """Whether a stack of this name has made the RayCluster: it is told by the field manager."""
    managers = known.body["metadata"].get("managedFields") or ()
    return any(each.get("manager") == f"pulumi-{PROJECT}-{stack}" for each in managers)


def _groups(pods: Iterable[dict[str, Any]], cluster: str) -> Iterator[str]:
    """The groups of a RayCluster's pods, one for each pod that is not going already."""
    for pod in pods:
        labels = pod["metadata"].get("labels") or {}
        ours = labels.get(CLUSTER_LABEL) == cluster and labels.get(_TYPE_LABEL) in _OF_RAY
        if ours and "deletionTimestamp" not in pod["metadata"]:
            yield labels.get(_GROUP_LABEL, "")
