"""Waits until a RayCluster is ready, or reports why it is not: from its objects in the API server, and from Kueue's
Workload or Volcano's PodGroup if it waits in a queue. Only reads.

The provider's `pulumi.com/waitFor` does not work here: it waits for `status.observedGeneration`, which KubeRay writes
only when something else in the status changes (ray-operator/controllers/ray/utils/consistency.go). So after most edits
it would wait until its timeout and fail.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from components.cluster import Cluster, ClusterUnreachableError, ForbiddenError
from components.queues.kueue import API_VERSION
from components.ray_cluster.pods import CLUSTER_LABEL
from components.rollout.pods import kind, leaves
from components.rollout.replacing import old_heads, old_workers
from components.rollout.templates import parts
from components.waiting import until
from core.body import Body
from kuberay.pods import desired, groups_of

OPERATOR_PODS = "app.kubernetes.io/component=kuberay-operator"
"""Selects the operator's pods (ray-operator/config/manager/manager.yaml)."""

ENDED = ("Succeeded", "Failed")
"""Phases in which a pod holds nothing."""

_UNCOUNTED: Mapping[str, int | None] = dict.fromkeys(
    ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
)
"""The proposal's ReplicaStatus of pods that were not read."""


class NotReadyError(Exception):
    """The RayCluster is not ready in time; the message has the reason."""


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
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When it was read."""
    no_operator: str = "the operator has no pod: is its Deployment gone, scaled down, or in another namespace?"
    """What is said if the operator has no pod."""


async def until_ready(
    cluster: Cluster,
    namespace: str,
    name: str,
    operator_namespace: str,
    limit: int,
    show: Callable[[str], None],
    queued: bool = False,
) -> dict[str, Any]:
    """Waits until the cluster is ready, or suspended if its spec sets `suspend`. Returns its `status`.

    `limit`: seconds. `show`: called with the current reason to wait, whenever it changes. `queued`: see is_ready.
    Raises NotReadyError.
    """

    def look() -> tuple[dict[str, Any] | None, str]:
        own, waiting = _look(cluster, namespace, name, queued)
        return (own["status"] if own and is_ready(own, queued) else None), waiting

    def late(_: str) -> NotReadyError:
        why = why_not_ready(cluster, namespace, name, operator_namespace, queued)
        return NotReadyError("\n  ".join([f"RayCluster {namespace}/{name} is not ready after {limit} s:", *why]))

    return await until(look, limit, show, late)


def _look(cluster: Cluster, namespace: str, name: str, queued: bool) -> tuple[dict[str, Any] | None, str]:
    """The cluster, and the reason to wait. An API server that does not answer is asked again later."""
    try:
        own = cluster.get("ray.io/v1", "rayclusters", namespace, name)
    except ClusterUnreachableError as error:
        return None, str(error)
    if queued and own and own["spec"].get("suspend"):
        why = why_it_waits(cluster, own)
        return own, f"RayCluster {namespace}/{name} waits in its queue{f': {why}' if why else ''}"
    return own, f"waiting for RayCluster {namespace}/{name}, now {state_of(own)}"


def state_of(cluster: Mapping[str, Any] | None) -> str:
    """KubeRay's state. `ready` is its last word, also if the head's pod has not been ready since."""
    status = (cluster or {}).get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions", [])}
    head = conditions.get("HeadPodReady", {"status": "True"})
    if status.get("state") == "ready" and head["status"] != "True":
        return f"with a head that is not ready: {head.get('message') or head.get('reason')}"
    return str(status.get("state") or "without a state")


def status_summary(
    cluster: Mapping[str, Any] | None, pods: Sequence[Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The status of a RayCluster with the fields of Ray's proposal "Running Ray Cluster on Kubernetes Natively with
    Autoscaler", from its object and its pods; None for what is not known.

    `head` and `worker` count pods as the status of a Deployment does. A pod is available as soon as it is ready,
    because KubeRay has no minReadySeconds. KubeRay omits numbers of workers that are 0.
    """
    metadata, spec, known = ((cluster or {}).get(key) or {} for key in ("metadata", "spec", "status"))
    head = known.get("head") or {}
    desired = {name: int(known.get(f"{name}WorkerReplicas") or 0) for name in ("desired", "min", "max")}
    counted = _replicas(spec, pods) if spec and pods is not None else dict.fromkeys(("head", "worker"), _UNCOUNTED)
    return {
        "state": known.get("state"),
        "startTime": metadata.get("creationTimestamp"),
        "observedGeneration": known.get("observedGeneration"),
        "lastReconcileTime": known.get("lastUpdateTime"),
        "head": {"pod": head.get("podName"), "service": head.get("serviceName"), **counted["head"]},
        "worker": {**desired, **counted["worker"]},
        "conditions": conditions(cluster or {}),
    }


def conditions(body: Mapping[str, Any]) -> list[Body]:
    """The conditions of an object, each with the time since which it has its status."""
    fields = ("type", "status", "reason", "message", "lastTransitionTime")
    return [{key: each.get(key) for key in fields} for each in (body.get("status") or {}).get("conditions") or ()]


def _replicas(spec: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The numbers of pods of the head and of all workers, by the fields of the proposal's ReplicaStatus."""
    template, suspended = parts(spec), bool(spec.get("suspend"))
    workers = sum(desired(each) for each in groups_of(spec).values())
    alive = [pod for pod in pods if not leaves(pod) and (pod.get("status") or {}).get("phase") not in ENDED]
    made = {}
    for name, number, old in (("head", 1, old_heads), ("worker", workers, old_workers)):
        these = [pod for pod in alive if kind(pod) == name]
        ready = sum(is_ready_pod(pod) for pod in these)
        made[name] = {
            "replicas": len(these),
            "updatedReplicas": len(these) - len(old(these, template)),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": max((0 if suspended else number) - ready, 0),
        }
    return made


def is_ready_pod(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is Ready and does not end."""
    ready = {"type": "Ready", "status": "True"}.items()
    return not leaves(pod) and any(ready <= each.items() for each in (pod.get("status") or {}).get("conditions") or ())


def why_not_ready(
    cluster: Cluster, namespace: str, name: str, operator_namespace: str, queued: bool = False
) -> list[str]:
    """One line for each reason, the most specific first. An unreachable API server is itself the reason.

    `queued`: see is_ready.
    """
    try:
        return reasons(_read(cluster, namespace, name, operator_namespace, queued))
    except ClusterUnreachableError as error:
        return [str(error)]


def _read(cluster: Cluster, namespace: str, name: str, operator_namespace: str, queued: bool) -> Evidence:
    own = cluster.get("ray.io/v1", "rayclusters", namespace, name)
    pods = cluster.list("v1", "pods", namespace, labels=f"{CLUSTER_LABEL}={name}") or ()
    events = cluster.list("v1", "events", namespace) or ()
    names = {name, *(pod["metadata"]["name"] for pod in pods)}
    logs = {each: _log(cluster, namespace, *each) for pod in pods for each in starting(pod)}
    waits = why_it_waits(cluster, own) if queued and own and own["spec"].get("suspend") else None
    return Evidence(own, pods, about(events, names), _operator_pods(cluster, operator_namespace), logs, waits)


def _log(cluster: Cluster, namespace: str, pod: str, container: str) -> str:
    """The end of a container's log; empty if it cannot be read, for example without the right to."""
    try:
        text = b"".join(cluster.log(namespace, pod, container, tail=20))
    except ClusterUnreachableError:
        return ""
    return text.decode(errors="replace")


def _operator_pods(cluster: Cluster, namespace: str) -> tuple[Body, ...] | None:
    """The operator's pods; None if this account must not read them, as with rights in one namespace only."""
    try:
        return cluster.list("v1", "pods", namespace, labels=OPERATOR_PODS) or ()
    except ForbiddenError:
        return None


_LINES = 12
"""The most reasons that are shown, so that the first one stays visible."""


def reasons(evidence: Evidence) -> list[str]:
    """The reasons in the evidence: conditions of the cluster, waiting pods, warnings newest first, the operator."""
    if evidence.cluster is None:
        return ["it does not exist: it was deleted after its creation"]
    waits = [f"it waits in its queue: {evidence.waits}"] if evidence.waits else []
    of_pods = [line for pod in evidence.pods for line in pod_reasons(pod, evidence.logs)]
    lines = [*waits, *_conditions(evidence.cluster, evidence.pods), *of_pods]
    # A pod's status repeats the messages of events of the scheduler and the kubelet.
    reported = "\n".join(lines)
    pulls = [pod["metadata"]["name"] for pod in evidence.pods if _pull_errors(pod)]
    lines += warnings((event for event in evidence.events if not _repeats(event, pulls, reported)), reported)
    lines += _operator(evidence)
    return list(dict.fromkeys(lines))[:_LINES] or ["no event and no condition has the reason: read the operator's log"]


def is_ready(cluster: dict[str, Any], queued: bool = False) -> bool:
    """Whether a RayCluster has reached the state of its spec: ready, or suspended.

    `queued`: a queue without room suspends it, so a suspended cluster is not ready.

    RayClusterProvisioned stays true once it was true (KubeRay's RayClusterConditionType), so HeadPodReady counts as
    well. It is also true while workers are missing, if the pods that exist are ready; the state is not (calculateStatus
    in ray-operator/controllers/ray/raycluster_controller.go).
    """
    status = cluster.get("status") or {}
    true = {each["type"] for each in status.get("conditions", []) if each["status"] == "True"}
    if cluster["spec"].get("suspend"):
        return not queued and "RayClusterSuspended" in true
    return status.get("state") == "ready" and {"HeadPodReady", "RayClusterProvisioned"} <= true


def _conditions(cluster: dict[str, Any], pods: Iterable[Body]) -> list[str]:
    """Those that are bad, without what the pods' own status has: KubeRay copies why an image is not pulled."""
    status, copied = cluster.get("status") or {}, [error for pod in pods for error in _pull_errors(pod)]
    lines = [
        f"RayCluster: {condition['type']} is {condition['status']}: {condition.get('message') or condition['reason']}"
        for condition in status.get("conditions", [])
        if _is_bad(condition) and not any(error in condition.get("message", "") for error in copied)
    ]
    return [*lines, *([f"RayCluster: {status['reason']}"] if status.get("reason") else [])]


def _pull_errors(pod: Body) -> list[str]:
    """The messages of its containers whose image cannot be pulled."""
    status = pod.get("status") or {}
    found = (each.get("state", {}).get("waiting") or {} for each in status.get("containerStatuses") or ())
    return [each["message"] for each in found if each.get("reason") in _NOT_PULLED and each.get("message")]


_NOT_PULLED = ("ErrImagePull", "ImagePullBackOff")
"""Reasons of a waiting container (kubernetes, pkg/kubelet/images/types.go)."""

_PULL_FAILED = "Failed to pull image "
"""Begin of the kubelet's event, before the image, a colon and the error."""


def _repeats(event: Body, pulls: Collection[str], reported: str) -> bool:
    """Whether an event has only what is reported of pods that wait for their image. `pulls`: their names."""
    message, reason = event.get("message") or "", event.get("reason")
    if event["involvedObject"].get("name") not in pulls or reason != "Failed":
        return False
    error = message.partition(": ")[2] if message.startswith(_PULL_FAILED) else ""
    return message in [f"Error: {each}" for each in _NOT_PULLED] or bool(error and error in reported)


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


def _operator(evidence: Evidence) -> list[str]:
    pods = evidence.operator_pods
    if pods is not None and not pods:
        return [evidence.no_operator]
    lines = [line for pod in pods or () for line in pod_reasons(pod, {})]
    if not (evidence.cluster or {}).get("status"):
        lines.append(not_looked("the RayCluster", pods, evidence.at))
    return lines


_NEW_SECONDS = 60
"""An operator that has just started has not read all objects."""


def not_looked(what: str, operator_pods: Sequence[Body] | None, at: datetime) -> str:
    """Of an object without a status: that the operator has only started, or what to look at."""
    made = [each["metadata"].get("creationTimestamp") for each in operator_pods or ()]
    first = min((datetime.fromisoformat(each) for each in made if each), default=None)
    begin = f"the operator has not looked at {what}"
    if first and (seconds := max(int((at - first).total_seconds()), 0)) < _NEW_SECONDS:
        return f"{begin}: its pod started {seconds} s ago, and soon does"
    return f"{begin}: does it run, and does it watch the namespace?"


_OWNER_LABEL = "kueue.x-k8s.io/job-uid"
"""Label of a Workload with the UID of its owner (kueue, pkg/controller/constants/constants.go)."""

_CONDITIONS = ("QuotaReserved", "Admitted")
"""Conditions of an admitted RayCluster, in the order in which they become true (kueue, apis/kueue/v1beta2)."""


def why_it_waits(cluster: Cluster, own: Mapping[str, Any]) -> str | None:
    """The reason, as Kueue reports it; None if there is none, or it cannot be read. `own`: the RayCluster, whose
    RayService has the Workload if it belongs to one."""
    metadata = own["metadata"]
    services = [each["uid"] for each in metadata.get("ownerReferences") or () if each["kind"] == "RayService"]
    selected = f"{_OWNER_LABEL}={(services or [metadata['uid']])[0]}"
    try:
        listed = cluster.list(API_VERSION, "workloads", metadata["namespace"], labels=selected)
    except ClusterUnreachableError:
        # This account may have no right to read Workloads. The reason is not worth a failed update.
        return None
    return reason(listed or ())


def reason(workloads: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason in the newest Workload of one RayCluster."""
    newest = max(workloads, key=lambda each: str(each["metadata"].get("creationTimestamp", "")), default=None)
    conditions = {each["type"]: each for each in ((newest or {}).get("status") or {}).get("conditions", ())}
    for name in _CONDITIONS:
        condition = conditions.get(name)
        if condition and condition["status"] != "True":
            return str(condition.get("message") or condition["reason"])
    return None


_WAITING_PHASES = {
    "Pending": "Volcano has not admitted it to the queue",
    "Inqueue": "its queue has admitted it, and its pods have no nodes yet",
}
"""Phases of a PodGroup whose gang has not started (volcano, apis/pkg/apis/scheduling/v1beta1/types.go), and the reason
if Volcano reports none."""


def gang_waits(pod_group: Mapping[str, Any]) -> bool:
    """Whether Volcano has not started the gang."""
    return _phase(pod_group) in _WAITING_PHASES


def gang_reason(pod_groups: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason in the PodGroups of one RayCluster or RayJob that have not started; None if all have.

    The condition stays after the gang has started (volcano, pkg/scheduler/plugins/gang/gang.go), so the phase counts as
    well.
    """
    for pod_group in filter(gang_waits, pod_groups):
        conditions = (pod_group.get("status") or {}).get("conditions") or ()
        messages = (each.get("message") for each in conditions if each["type"] == "Unschedulable")
        return next(messages, None) or _WAITING_PHASES[_phase(pod_group)]
    return None


def _phase(pod_group: Mapping[str, Any]) -> str:
    return str((pod_group.get("status") or {}).get("phase") or "Pending")
