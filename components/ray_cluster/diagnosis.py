"""Why a RayCluster is not ready, from its objects in the API server. Pure functions."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_LINES = 12
"""The most reasons that are shown, so that the first one stays visible."""


@dataclass(frozen=True)
class Evidence:
    """The objects of a cluster that is not ready, as the API server returns them."""

    cluster: dict[str, Any] | None
    pods: tuple[dict[str, Any], ...] = ()
    events: tuple[dict[str, Any], ...] = ()
    operator_pods: tuple[dict[str, Any], ...] | None = ()
    """None: this account must not read them."""
    logs: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The end of the logs of containers that run and are not ready, by pod name and container name."""
    waits: str | None = None
    """Why it waits in its queue; None if it does not wait."""


def reasons(evidence: Evidence) -> list[str]:
    """The reasons in the evidence: conditions of the cluster, waiting pods, warnings newest first, the operator."""
    if evidence.cluster is None:
        return ["it does not exist: it was deleted after its creation"]
    waits = [f"it waits in its queue: {evidence.waits}"] if evidence.waits else []
    lines = [
        *waits,
        *_conditions(evidence.cluster),
        *(line for pod in evidence.pods for line in pod_reasons(pod, evidence.logs)),
    ]
    # A pod's status repeats the messages of events of the scheduler and the kubelet.
    reported = "\n".join(lines)
    lines += warnings(evidence.events, reported)
    lines += _operator(evidence.operator_pods, evidence.cluster)
    return list(dict.fromkeys(lines))[:_LINES] or ["no event and no condition has the reason: read the operator's log"]


def is_ready(cluster: dict[str, Any], queued: bool = False) -> bool:
    """Whether a RayCluster has reached the state of its spec: ready, or suspended.

    `queued`: a queue without room suspends it, so a suspended cluster is not ready.

    RayClusterProvisioned stays true once it was true (KubeRay's RayClusterConditionType), so HeadPodReady counts as
    well.
    """
    conditions = (cluster.get("status") or {}).get("conditions", [])
    true = {each["type"] for each in conditions if each["status"] == "True"}
    if cluster["spec"].get("suspend"):
        return not queued and "RayClusterSuspended" in true
    return {"HeadPodReady", "RayClusterProvisioned"} <= true


def _conditions(cluster: dict[str, Any]) -> list[str]:
    status = cluster.get("status") or {}
    lines = [
        f"RayCluster: {condition['type']} is {condition['status']}: {condition.get('message') or condition['reason']}"
        for condition in status.get("conditions", [])
        if _is_bad(condition)
    ]
    return [*lines, *([f"RayCluster: {status['reason']}"] if status.get("reason") else [])]


def _is_bad(condition: dict[str, Any]) -> bool:
    """Conditions are good when true, except those of a failure or a suspension."""
    kind, true = condition["type"], condition["status"] == "True"
    return true if kind in ("ReplicaFailure", "RayClusterSuspending", "RayClusterSuspended") else not true


def pod_reasons(pod: dict[str, Any], logs: Mapping[tuple[str, str], str]) -> list[str]:
    """Why a pod is not scheduled, does not start, or has ended."""
    name, status = pod["metadata"]["name"], pod.get("status", {})
    lines = [
        f"pod {name} is not scheduled: {condition.get('message') or condition.get('reason')}"
        for condition in status.get("conditions", [])
        if condition["type"] == "PodScheduled" and condition["status"] == "False"
    ]
    for container in [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]:
        for state in ("waiting", "terminated"):
            detail = container.get("state", {}).get(state)
            if detail and detail.get("reason") not in ("Completed", "PodInitializing", "ContainerCreating"):
                before = (container.get("lastState", {}).get("terminated") or {}).get("message")
                ended = f"; it ended with: {_last(before)}" if state == "waiting" and before else ""
                lines.append(f"pod {name}, container {container['name']}: {_joined(detail)}{ended}")
    for _, sidecar in starting(pod):
        why = _last(logs.get((name, sidecar), "")) or "read its log"
        lines.append(f"pod {name}, container {sidecar}: runs, but is not ready, and Ray waits for it: {why}")
    return lines


def starting(pod: dict[str, Any]) -> list[tuple[str, str]]:
    """Sidecars of the pod that run but have not passed their startup probe. The other containers wait for them."""
    return [
        (pod["metadata"]["name"], container["name"])
        for container in pod.get("status", {}).get("initContainerStatuses", [])
        if container.get("state", {}).get("running") and container.get("started") is False
    ]


def _last(text: str) -> str:
    """The last line of a container's log; of a JSON line, its message."""
    line = next((each for each in reversed(text.splitlines()) if each.strip()), "")
    try:
        return str(json.loads(line)["message"])
    except (ValueError, KeyError, TypeError):
        return line.strip()


def _joined(detail: dict[str, Any]) -> str:
    return ": ".join(str(detail[key]) for key in ("reason", "message") if detail.get(key)) or f"ended with {detail}"


def about(events: Iterable[dict[str, Any]], names: Collection[str]) -> tuple[dict[str, Any], ...]:
    """The events about objects of these names."""
    return tuple(event for event in events if event["involvedObject"].get("name") in names)


def warnings(events: Iterable[dict[str, Any]], reported: str = "") -> list[str]:
    """Events of type Warning, newest first, without those whose message is in `reported`."""
    found = sorted((event for event in events if event.get("type") == "Warning"), key=when, reverse=True)
    return [_event(event) for event in found if event.get("message", "") not in reported]


def _event(event: dict[str, Any]) -> str:
    subject = event["involvedObject"]
    return f"{subject['kind']} {subject['name']}: {event.get('reason')}: {event.get('message')}"


def when(event: dict[str, Any]) -> str:
    """Time of an event in RFC 3339, which sorts as text."""
    return event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or ""


def _operator(pods: tuple[dict[str, Any], ...] | None, cluster: dict[str, Any]) -> list[str]:
    if pods is not None and not pods:
        return ["the operator has no pod: is its Deployment scaled down, or in another namespace?"]
    lines = [line for pod in pods or () for line in pod_reasons(pod, {})]
    if not cluster.get("status"):
        lines.append("the operator has not looked at the RayCluster: does it run, and does it watch the namespace?")
    return lines
