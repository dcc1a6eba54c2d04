"""The live RayClusters of namespaces, and their pods. Only reads."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import kubernetes

from components.cluster import connect, read
from components.rollout.pods import CLUSTER_LABEL, Pod, group, kind, leaves

from .ray_pods import Known

_OF_RAY = ("head", "worker")
"""Not the pod of the cleanup Job for Redis (ray-operator/apis/ray/v1/raycluster_types.go: RayNodeType)."""


def live(context: str | None, namespaces: Iterable[str], release: str) -> dict[str, Known]:
    """The RayClusters by `<namespace>/<name>`, without those of a RayJob or RayService.

    `release`: minor version of the operator.
    Raises ClusterUnreachableError if the API server does not answer or refuses.
    """
    api = connect(context)
    found: dict[str, Known] = {}
    for namespace in namespaces:
        found.update(in_namespace(api, namespace, release))
    return found


def in_namespace(api: Any, namespace: str, release: str) -> Iterator[tuple[str, Known]]:
    """The RayClusters of one namespace. `api`: a client of the API server. Raises as `live` does."""
    objects, core = kubernetes.client.CustomObjectsApi(api), kubernetes.client.CoreV1Api(api)
    listed = read(objects.list_namespaced_custom_object, "ray.io", "v1", namespace, "rayclusters") or {}
    pods = read(core.list_namespaced_pod, namespace, label_selector=CLUSTER_LABEL) or {}
    for body in listed.get("items", ()):
        if not body["metadata"].get("ownerReferences"):
            name = body["metadata"]["name"]
            running = [pod for pod in pods.get("items", ()) if _of(name, pod)]
            groups = Counter(str(group(pod) or "") for pod in running)
            yield f"{namespace}/{name}", Known(body, groups, release, running)


def _of(cluster: str, pod: Pod) -> bool:
    """Whether it is a pod of that RayCluster, and is not being deleted."""
    labels = pod["metadata"].get("labels") or {}
    return labels.get(CLUSTER_LABEL) == cluster and kind(pod) in _OF_RAY and not leaves(pod)
