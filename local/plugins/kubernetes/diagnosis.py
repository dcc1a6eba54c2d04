"""Reasons why an object is not ready: its conditions, warnings about it and its pods, and its waiting containers."""

from collections.abc import Iterable

from local.plugins.kubernetes.cluster import Cluster
from local.plugins.kubernetes.errors import ApiError, NoSuchKindError, UnreachableError
from local.plugins.kubernetes.objects import Kind, at, name_of, namespace_of
from local.plugins.kubernetes.values import Json

POD = Kind("", "v1", "Pod")
EVENT = Kind("", "v1", "Event")
_AT_MOST = 10
"""The number of lines of each sort; more lines would repeat the first."""


def explain(cluster: Cluster, obj: Json) -> list[str]:
    """What the cluster reports about an object that is not ready, the most useful first; empty if it reports
    nothing."""
    try:
        pods = _pods(cluster, obj)
        events = cluster.list(EVENT, namespace_of(obj) or "default", fieldSelector="type=Warning")
    except (ApiError, NoSuchKindError, UnreachableError):
        # Without the right to read pods or events there is nothing to add to the reported error.
        pods, events = [], []
    about = {at(thing, "metadata", "uid") for thing in (obj, *pods)}
    return [
        *_first(f"Pod {name_of(pod)}: {reason}" for pod in pods for reason in _containers(pod)),
        *_first(_warning(event) for event in events if at(event, "involvedObject", "uid") in about),
        *_first(_conditions(obj)),
    ]


def _first(lines: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(lines))[:_AT_MOST]


def _pods(cluster: Cluster, obj: Json) -> list[Json]:
    """The pods that the object selects (by `spec.selector`) or owns."""
    if Kind.of_object(obj) == POD:
        return [obj]
    namespace = namespace_of(obj)
    if not namespace:
        return []
    labels = at(obj, "spec", "selector", "matchLabels")
    if isinstance(labels, dict) and labels:
        return cluster.list(POD, namespace, labelSelector=",".join(f"{key}={value}" for key, value in labels.items()))
    uid = at(obj, "metadata", "uid")
    owned = cluster.list(POD, namespace)
    return [pod for pod in owned if uid in [owner["uid"] for owner in at(pod, "metadata", "ownerReferences") or []]]


def _containers(pod: Json) -> Iterable[str]:
    for status in (at(pod, "status", "initContainerStatuses") or []) + (at(pod, "status", "containerStatuses") or []):
        stopped = at(status, "state", "waiting") or at(status, "state", "terminated") or {}
        if stopped.get("reason") not in (None, "ContainerCreating", "PodInitializing", "Completed"):
            last = at(status, "lastState", "terminated", "exitCode")
            more = [stopped.get("message"), None if last is None else f"last exit code {last}"]
            yield f"container {status['name']}: [{stopped['reason']}] {'; '.join(filter(None, more))}".rstrip()


def _warning(event: Json) -> str:
    about = event["involvedObject"]
    return f"{about.get('kind')} {about.get('name')}: [{event.get('reason')}] {event.get('message', '').strip()}"


def _conditions(obj: Json) -> Iterable[str]:
    for entry in at(obj, "status", "conditions") or []:
        if entry.get("status") == "False" and (entry.get("message") or entry.get("reason")):
            yield f"condition {entry['type']} is False: [{entry.get('reason')}] {entry.get('message', '')}".rstrip()
    for key in ("reason", "message"):
        if text := at(obj, "status", key):
            yield f"status.{key}: {text}"
