"""The live RayCluster to adopt, from the API server. Only reads."""

from collections.abc import Sequence

from components.cluster import Cluster, ClusterUnreachableError
from components.ray_cluster.manifests import API_VERSION
from core.body import Body

_WITHOUT_ADOPTION = (("RayService", "rayservices"), ("RayJob", "rayjobs"))
"""Kinds that a stack file has, too, but that are never adopted, and their plural names."""

_MOVE = (
    "The stack adds a label to the pods, so KubeRay would replace those of a service, and a job would start again. Add "
    "it under another name (`ray-platform import` writes the entry), move its clients, then delete this one"
)


class CannotAdoptError(Exception):
    """The RayCluster cannot be added to the stack; the message has the reason and what to do."""


def live_cluster(cluster: Cluster, namespace: str, name: str) -> Body:
    """The RayCluster of that name. Raises CannotAdoptError if there is none, or if another object owns it."""
    try:
        body = cluster.get(API_VERSION, "rayclusters", namespace, name)
        if body is None:
            clusters = cluster.list(API_VERSION, "rayclusters", namespace)
            for kind, plural in _WITHOUT_ADOPTION:
                if clusters is not None and cluster.get(API_VERSION, plural, namespace, name):
                    raise CannotAdoptError(f"{namespace}/{name} is a {kind}, and only RayClusters are adopted. {_MOVE}")
            raise CannotAdoptError(_not_there(namespace, name, clusters))
    except ClusterUnreachableError as error:
        raise CannotAdoptError(f"the cluster cannot be read with {cluster.connection}: {error}") from error
    metadata = body["metadata"]
    if owners := [f"{each['kind']} {each['name']}" for each in metadata.get("ownerReferences") or []]:
        raise CannotAdoptError(
            f"RayCluster {namespace}/{name} belongs to {', '.join(owners)}, which would undo every edit: "
            "adopt a RayCluster without an owner"
        )
    if metadata.get("deletionTimestamp"):
        raise CannotAdoptError(f"RayCluster {namespace}/{name} is being deleted since {metadata['deletionTimestamp']}")
    return body


def _not_there(namespace: str, name: str, clusters: Sequence[Body] | None) -> str:
    if clusters is None:
        return f"the cluster has no RayClusters (ray.io/v1), so no {namespace}/{name}: is this the right context?"
    names = ", ".join(sorted(item["metadata"]["name"] for item in clusters)) or "none"
    return f"there is no RayCluster {name!r} in namespace {namespace!r}; RayClusters there: {names}"
