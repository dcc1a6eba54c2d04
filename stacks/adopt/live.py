"""The RayCluster that is to be adopted, as the API server has it. Only reads."""

from typing import Any

import kubernetes

from components.cluster import ClusterUnreachableError, connect, read

Body = dict[str, Any]


class CannotAdoptError(Exception):
    """The RayCluster cannot be taken into the stack; the message says why and what to do."""


def live_cluster(context: str | None, namespace: str, name: str) -> Body:
    """The RayCluster of that name. Raises CannotAdoptError where there is none, or it belongs to another object."""
    try:
        api = kubernetes.client.CustomObjectsApi(connect(context))
        body = read(api.get_namespaced_custom_object, "ray.io", "v1", namespace, "rayclusters", name)
        if body is None:
            there = read(api.list_namespaced_custom_object, "ray.io", "v1", namespace, "rayclusters")
            raise CannotAdoptError(_not_there(namespace, name, there))
    except ClusterUnreachableError as error:
        by = f"context {context!r}" if context else "the current context"
        raise CannotAdoptError(f"the cluster cannot be read with {by}: {error}") from error
    metadata = body["metadata"]
    if owners := [f"{each['kind']} {each['name']}" for each in metadata.get("ownerReferences") or []]:
        raise CannotAdoptError(
            f"RayCluster {namespace}/{name} belongs to {', '.join(owners)}, which would undo every edit: "
            "adopt a RayCluster of its own"
        )
    if metadata.get("deletionTimestamp"):
        raise CannotAdoptError(f"RayCluster {namespace}/{name} is being deleted since {metadata['deletionTimestamp']}")
    return body


def _not_there(namespace: str, name: str, there: Body | None) -> str:
    if there is None:
        return f"the cluster has no RayClusters (ray.io/v1), so no {namespace}/{name}: is this the right context?"
    names = ", ".join(sorted(item["metadata"]["name"] for item in there["items"])) or "none"
    return f"there is no RayCluster {name!r} in namespace {namespace!r}; RayClusters there: {names}"
