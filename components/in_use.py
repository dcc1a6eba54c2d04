"""KubeRay's objects of a namespace or of the cluster: which of them run, and how a message names them. Only reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from components.cluster import Cluster

_NAMED = 10
"""The most objects that a message names. Of the others it reports only the number."""

KINDS_OF_KUBERAY = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
"""The kinds that run, or start later by schedule."""

_ENDED = {"Complete", "Failed", "ValidationFailed"}
"""`jobDeploymentStatus` of a RayJob that will never run again (ray-operator/apis/ray/v1/rayjob_types.go)."""


def kuberay_objects(cluster: Cluster, kinds: Sequence[str], namespace: str | None = None) -> list[dict[str, Any]]:
    """The objects of these kinds, plural names in the group ray.io, of a namespace or of all; each has its `kind`.

    Raises ClusterUnreachableError if they cannot be read, also if that is forbidden. A kind that is not served has no
    objects.
    """
    return custom_objects(cluster, [f"{plural}.v1.ray.io" for plural in kinds], namespace)


def custom_objects(cluster: Cluster, resources: Sequence[str], namespace: str | None = None) -> list[dict[str, Any]]:
    """As `kuberay_objects`, of kinds of any group: `queues.v1beta1.scheduling.volcano.sh`."""
    found: list[dict[str, Any]] = []
    for resource in resources:
        plural, version, group = resource.split(".", 2)
        listed = cluster.list(f"{group}/{version}", plural, namespace)
        found += [{"kind": plural, **body} for body in listed or ()]
    return found


def named(objects: Sequence[Mapping[str, Any]]) -> str:
    """Objects as a message names them: `RayCluster team-a/training and 3 more`."""
    names = [f"{body['kind']} {place_of(body['metadata'])}" for body in objects]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def place_of(metadata: Mapping[str, Any]) -> str:
    """`<namespace>/<name>`, or the name alone."""
    return "/".join(part for part in (metadata.get("namespace"), metadata["name"]) if part)


def runs(body: Mapping[str, Any]) -> bool:
    """Whether a KubeRay object has pods, or will have some."""
    if (body.get("spec") or {}).get("suspend"):
        return False
    return not has_ended(body) and _status(body) != "Suspended"


def has_ended(body: Mapping[str, Any]) -> bool:
    """Whether it is a RayJob that has ended. One that is suspended has not: Kueue suspends those that wait."""
    return body["kind"] == "RayJob" and _status(body) in _ENDED


def _status(body: Mapping[str, Any]) -> object:
    return (body.get("status") or {}).get("jobDeploymentStatus")
