"""The status of a RayCluster: its state, its pods, its GPUs, and why it is not ready. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from components.job_template.manifests import AUTHOR_ANNOTATION, CODE_ANNOTATION, SIZE_LABEL, TEMPLATE_LABEL
from components.operator.settings import NAME as OPERATOR
from components.payloads.idle_termination import rests_since
from components.queues.settings import Backend
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_cluster.readiness import (
    ENDED,
    Evidence,
    about,
    gang_reason,
    is_ready,
    is_ready_pod,
    pod_reasons,
    reason,
    reasons,
    status_summary,
)
from components.rollout.pods import group, kind, leaves
from components.tenant.demand import demand
from core.body import Body
from core.nodes import gpu_names, gpus_of
from core.quantities import amount
from kuberay.pods import desired, groups_of
from kuberay.schedulers import KUEUE_QUEUE_LABEL
from stacks.commands.status.snapshot import Found, Live, owned_by, seconds_between

NO_LIMIT = 2**31 - 1
"""The default of `maxReplicas` in the RayCluster's CRD (ray-operator/apis/ray/v1/raycluster_types.go)."""

WAKES = "`ray-platform wake STACK NAMESPACE/NAME`"
"""The command, for messages."""


class State(StrEnum):
    READY = "ready"
    SUSPENDED = "suspended"
    RESTING = "resting"
    """Nobody used it, so idleTerminationOptions suspended it."""
    WAITING = "waiting"
    """Its queue has no room for it."""
    NOT_READY = "not ready"
    DELETING = "deleting"
    MISSING = "missing"
    """It is in the stack file and not in the cluster."""
    UNKNOWN = "unknown"
    """This account must not read RayClusters."""


AS_DESIRED = (State.READY, State.SUSPENDED, State.RESTING)
"""A cluster is suspended only if its own spec asks for it."""


@dataclass(frozen=True)
class Gpus:
    """GPUs as pods request them, not as tasks use them; None for those of unreadable pods."""

    held: int | None
    """Of pods on a node, which no other pod can have."""

    waiting: int | None
    """Of pods without a node."""

    most: int | None
    """What it can grow to; None if it has no limit, or it is not known."""


@dataclass(frozen=True)
class Group:
    name: str
    ready: int | None
    """Pods that are Ready; None: this account must not read pods."""
    desired: int


@dataclass(frozen=True)
class ClusterStatus:
    name: str
    state: State
    in_stack_file: bool
    owner: str | None = None
    """The RayJob or RayService that it belongs to: `RayJob nightly`."""
    age: int | None = None
    """Seconds since its creation."""
    head: str | None = None
    """Phase of the head's pod; None without one."""
    groups: tuple[Group, ...] = ()
    gpus: Gpus = Gpus(None, None, None)
    status: Body = field(default_factory=lambda: status_summary(None))
    """As the outputs of `up` have it."""
    reasons: tuple[str, ...] = ()
    """Why it is not as desired; of one that is, why pods of it wait, or since when it rests."""

    @property
    def ok(self) -> bool:
        """Whether it is as its spec and the stack file describe it."""
        return self.state in AS_DESIRED


def missing(name: str, found: Found) -> ClusterStatus:
    """A RayCluster of the stack file that was not found."""
    known, why = found.absence("rayclusters")
    if not known:
        return ClusterStatus(name, State.UNKNOWN, in_stack_file=True, reasons=(why,))
    nothing = Gpus(0, 0, None)
    return ClusterStatus(name, State.MISSING, in_stack_file=True, gpus=nothing, reasons=(why,))


def cluster_status(
    body: Body, found: Found, live: Live, backend: Backend | None, *, in_stack_file: bool
) -> ClusterStatus:
    """The status of an existing RayCluster. `found`: of its namespace; `backend`: the scheduler of the queues."""
    metadata = body["metadata"]
    name = metadata["name"]
    pods = [pod for pod in found.all("pods") if (pod["metadata"].get("labels") or {}).get(CLUSTER_LABEL) == name]
    waits = why_it_waits(body, found, backend)
    state = _state(body, waits)
    head = next((pod for pod in pods if kind(pod) == "head" and not leaves(pod)), None)
    gone = state is State.READY and head is None and "pods" not in found.unreadable
    if gone:
        state = State.NOT_READY
    names = {name, *(pod["metadata"]["name"] for pod in pods)}
    if state is State.DELETING:
        why = [f"it is being deleted since {metadata['deletionTimestamp']}{_kept_by(metadata)}"]
    elif state is State.RESTING:
        why = [f"it has been resting since {rests_since(body)}: {WAKES} wakes it"]
    elif state in AS_DESIRED:
        why = [line for pod in pods if not leaves(pod) for line in pod_reasons(dict(pod), {})]
    else:
        events = about(found.all("events"), names)
        evidence = Evidence(body, tuple(pods), events, live.operator_pods, waits=waits, at=live.at)
        if any(each.name == OPERATOR for each in live.workloads):
            evidence = replace(evidence, no_operator=_SEE_PLATFORM)
        why = [line.removeprefix("RayCluster: ") for line in reasons(evidence)]
        if not in_stack_file and not metadata.get("ownerReferences"):
            why += (line for pod in pods for line in _before_edit(body, pod))
        if gone:
            why.insert(0, "it has no pod of a head: that it is ready is KubeRay's last report, and no longer true")
    return ClusterStatus(
        name,
        state,
        in_stack_file,
        owner_of(body),
        seconds_between(metadata.get("creationTimestamp"), live.at),
        phase(head) if head else None,
        tuple(_groups(body["spec"], pods, known="pods" not in found.unreadable)),
        _gpus(body, pods, known="pods" not in found.unreadable),
        status_summary(body, None if "pods" in found.unreadable else pods),
        tuple(why),
    )


_SEE_PLATFORM = "the operator has no pod: the line about it under Platform has the reason"


def _before_edit(body: Body, pod: Body) -> Iterator[str]:
    """Of a pod that is not ready: that an edit of its image has no effect. Most of those of the stack file are
    replaced by `up`."""
    template = body["spec"]["headGroupSpec"] if kind(pod) == "head" else groups_of(body["spec"]).get(str(group(pod)))
    if template is None or is_ready_pod(pod) or leaves(pod) or phase(pod) in ENDED:
        return
    ray, edited = pod["spec"]["containers"][0], template["template"]["spec"]["containers"][0].get("image")
    if body["metadata"].get("generation", 1) > 1 and edited not in (None, ray.get("image")):
        name = pod["metadata"]["name"]
        yield f"pod {name} has the image before the edit to {edited}: delete it, and KubeRay creates it again"


def why_it_waits(body: Body, found: Found, backend: Backend | None) -> str | None:
    """Why the queue of a RayCluster or RayJob keeps it waiting; None if it does not."""
    if backend == "volcano":
        return gang_reason(owned_by(body, found.all("podgroups")))
    if backend != "kueue" or not waits_in_kueue(body):
        return None
    if why := found.unreadable.get("workloads"):
        return f"its Workload cannot be read: {why}"
    # Of a RayCluster of a RayService, that has the Workload.
    owners = (body, *({"metadata": each} for each in body["metadata"].get("ownerReferences") or ()))
    workloads = (each for owner in owners for each in owned_by(owner, found.all("workloads")))
    return reason(workloads) or "Kueue has not reported why"


def waits_in_kueue(body: Body) -> bool:
    """Whether it is Kueue that suspends a RayCluster or RayJob."""
    return bool(body["spec"].get("suspend")) and KUEUE_QUEUE_LABEL in (body["metadata"].get("labels") or {})


_OF_PACKAGES = "gcs://_ray_pkg_"

_SHORT = 12
"""Digits that identify a package well enough, as those of a commit."""


def owner_of(body: Body) -> str | None:
    """The object that an object belongs to; of a run, its job template and size, who runs it, and which code it
    has brought."""
    metadata = body["metadata"]
    owners = [f"{each['kind']} {each['name']}" for each in metadata.get("ownerReferences") or ()]
    labels = metadata.get("labels") or {}
    if (template := labels.get(TEMPLATE_LABEL)) and not owners:
        annotations = metadata.get("annotations") or {}
        code = str(annotations.get(CODE_ANNOTATION) or "").removeprefix(_OF_PACKAGES)
        size = f"size {labels[SIZE_LABEL]}" if labels.get(SIZE_LABEL) else None
        known = (size, annotations.get(AUTHOR_ANNOTATION), f"code {code[:_SHORT]}" if code else None)
        owners = [", ".join((f"template {template}", *(each for each in known if each)))]
    return ", ".join(owners) or None


def phase(pod: Any) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _state(body: Body, waits: str | None) -> State:
    if body["metadata"].get("deletionTimestamp"):
        return State.DELETING
    if is_ready(body, queued=waits_in_kueue(body)):
        if not body["spec"].get("suspend"):
            return State.READY
        return State.RESTING if rests_since(body) else State.SUSPENDED
    return State.WAITING if waits else State.NOT_READY


def _kept_by(metadata: Body) -> str:
    finalizers = metadata.get("finalizers")
    return f", and stays until its finalizers are gone: {', '.join(finalizers)}" if finalizers else ""


def _groups(spec: Body, pods: Sequence[Any], *, known: bool) -> Iterable[Group]:
    for name, each in groups_of(spec).items():
        ready = sum(group(pod) == name and is_ready_pod(pod) for pod in pods)
        yield Group(name, ready if known else None, 0 if spec.get("suspend") else desired(each))


def _gpus(body: Body, pods: Sequence[Any], *, known: bool) -> Gpus:
    most = _most(body)
    if not known:
        return Gpus(None, None, most)
    alive = [pod for pod in pods if phase(pod) not in ENDED]
    held = sum(requested(pod) for pod in alive if pod["spec"].get("nodeName"))
    waiting = sum(requested(pod) for pod in alive if not pod["spec"].get("nodeName") and not leaves(pod))
    return Gpus(held, waiting, most)


def requested(pod: Any) -> int:
    amounts = ((each.get("resources") or {}).get("requests") or {} for each in pod["spec"]["containers"])
    return sum(int(amount(str(each[name]))) for each in amounts for name in gpu_names(each))


def _most(body: Body) -> int | None:
    """GPUs of the head and of as many workers as the spec allows; None without a limit."""
    needed = demand({**body, "spec": {**body["spec"], "suspend": False}}, None)
    total = 0
    for each in needed.groups:
        gpus = int(gpus_of(each.usage))
        number = each.most if needed.scales else each.at_first
        if gpus and (number is None or number >= NO_LIMIT):
            return None
        total += gpus * (number or 0)
    return total
