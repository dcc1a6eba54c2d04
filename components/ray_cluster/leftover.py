"""What of a deleted RayCluster was left in Redis, as events tell it. Only reads."""

from collections.abc import Iterable, Mapping
from typing import Any

import kubernetes

from ..cluster import ClusterUnreachableError, connect, read
from .diagnosis import when

_FORCED = "ForceDeletedStuckCluster"
"""Reason of the operator's event where it gave up (KubeRay 1.6.2, raycluster_controller.go:
forceRemoveGCSFTFinalizer)."""

_FAILED = ("BackoffLimitExceeded", "DeadlineExceeded")
"""Reasons of the Job controller's events for a Job that failed (k8s.io/api/batch/v1, JobReason...)."""


def what_was_left(context: str | None, namespace: str, cluster: str, keys: str, since: str) -> str | None:
    """What to say of the keys of a RayCluster that is deleted now; None where they are gone too.

    `keys`: its storage namespace. `since`: when that was made, RFC 3339; older events are another cluster's.
    """
    try:
        core = kubernetes.client.CoreV1Api(connect(context))
        events = (read(core.list_namespaced_event, namespace) or {}).get("items", ())
    except ClusterUnreachableError as error:
        return _told(namespace, cluster, keys, f"it cannot be told whether Redis was cleaned up: {error}")
    why = why_left([event for event in events if when(event) >= since], cluster)
    return _told(namespace, cluster, keys, why) if why else None


def why_left(events: Iterable[Mapping[str, Any]], cluster: str) -> str | None:
    """Why KubeRay did not clean up after that cluster, None where nothing says that it did not."""
    found = None
    for event in events:
        about, reason = event["involvedObject"], event.get("reason")
        if about.get("kind") == "RayCluster" and about.get("name") == cluster and reason == _FORCED:
            return str(event["message"])
        if about.get("kind") == "Job" and _cleans_up(str(about.get("name")), cluster) and reason in _FAILED:
            found = f"Job {about['name']} failed: {event['message']}"
    return found


def _cleans_up(job: str, cluster: str) -> bool:
    """KubeRay cuts names to 63 characters at their beginning, and may change the first one (util.go: CheckLabel)."""
    return job[-62:] == f"{cluster}-redis-cleanup"[-62:]


def _told(namespace: str, cluster: str, keys: str, why: str) -> str:
    return (
        f"RayCluster {namespace}/{cluster} is gone, and its keys may be left in Redis: RAY{keys}@*. No other "
        f"RayCluster uses them; docs/fault-tolerance.md says how to delete them. ({why})"
    )
