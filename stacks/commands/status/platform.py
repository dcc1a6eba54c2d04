"""What keeps a stack current: operator, scheduler with its webhook, Prometheus, Alertmanager, log store, Redis.
Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from components.kueue.manifests import MANAGER
from components.logs.store import NAME as LOG_STORE
from components.monitoring.prometheus import ALERTMANAGER
from components.monitoring.prometheus import NAME as PROMETHEUS
from components.operator.settings import NAME as OPERATOR
from components.ray_cluster.readiness import is_ready_pod
from components.redis.connection import NAME as REDIS
from components.volcano.manifests import CONTROLLERS, SCHEDULER, WEBHOOK
from stacks.commands.status.snapshot import Live, Workload, lacks_pods
from stacks.objects.redis import redis_parts
from stacks.settings import StackSettings

_PUT_BACK = "`pulumi up -s STACK` creates it again"
_REFRESHED = "`ray-platform refresh STACK` and then `pulumi up -s STACK` create it again"

_STALE = "nothing below is kept current"

_WITHOUT: Mapping[str, tuple[str, str]] = {
    OPERATOR: ("the KubeRay operator", _STALE),
    SCHEDULER: ("Volcano's scheduler", "pods that wait in its queues stay Pending"),
    CONTROLLERS: ("Volcano's controller", "the state of queues and PodGroups is not kept current"),
    WEBHOOK: ("Volcano's webhook", "the API server may refuse new pods and PodGroups"),
    MANAGER: ("Kueue", "nothing that waits starts, and its webhook refuses new RayClusters and RayJobs"),
    LOG_STORE: ("the log store", "stored logs cannot be read, and new ones wait in the pods of Ray"),
    ALERTMANAGER: ("Alertmanager", "alerts are not sent; its pod waits until the Secret of the receivers exists"),
    PROMETHEUS: ("Prometheus", "metrics and alerts are missing"),
    REDIS: ("Redis", "heads with faultTolerance cannot start, or stop"),
}
"""What people call a Deployment or StatefulSet, and what happens without it, by its name."""


@dataclass(frozen=True)
class Problem:
    short: str
    """For the summary: `Redis has 2 of 3 nodes`."""

    line: str
    """What is wrong, what follows, and what to do."""


def workloads(stack: StackSettings, live: Live) -> list[Workload]:
    """What the stack has installed; the operator only if it has no pod. What exists already may have other names."""
    found = []
    if live.operator_pods == () and stack.operator.install == "manifests":
        found.append(Workload("deployments", stack.operator.namespace, OPERATOR))
    if stack.platform:
        return found
    if (scheduler := stack.scheduler) and scheduler.configured.install == "manifests":
        names = (SCHEDULER, CONTROLLERS, WEBHOOK) if scheduler.volcano else (MANAGER,)
        found += [Workload("deployments", scheduler.configured.namespace, name) for name in names]
    if namespace := stack.prometheus_namespace:
        found.append(Workload("statefulsets", namespace, PROMETHEUS))
        if stack.monitoring and stack.monitoring.alertmanager:
            found.append(Workload("statefulsets", namespace, ALERTMANAGER))
    if namespace := stack.log_store_namespace:
        found.append(Workload("statefulsets", namespace, LOG_STORE))
    return [*found, *(Workload("statefulsets", part.namespace, REDIS) for part in redis_parts(stack))]


def problems(stack: StackSettings, live: Live) -> Iterator[Problem]:
    """What does not run of the platform; not what this account must not read."""
    yield from _operator(stack, live)
    for each, body in live.workloads.items():
        title, without = _WITHOUT[each.name]
        where = f"{each.kind} {each.namespace}/{each.name}"
        if body is None:
            again = _PUT_BACK if each.plural == "deployments" else _REFRESHED
            yield Problem(f"{title} does not run", f"{title} is gone ({where}): {without}. {again}")
            continue
        wanted = body["spec"].get("replicas", 1)
        ready = (body.get("status") or {}).get("readyReplicas") or 0
        pods = _refused(each, live) if lacks_pods(body) else f"`kubectl get pods -n {each.namespace}` shows its pods"
        if not ready:
            state = "has no ready pod" if wanted else "is scaled to 0 replicas"
            pods = pods if wanted else _REFRESHED.replace("create it again", "scale it back")
            yield Problem(f"{title} does not run", f"{title} {state} ({where}): {without}. {pods}")
        elif each.plural == "statefulsets" and ready < wanted:
            some = f"{ready} of {wanted} nodes"
            yield Problem(
                f"{title} has {some}", f"{title} has {some} ready ({where}): the loss of one more may stop it. {pods}"
            )


def _refused(each: Workload, live: Live) -> str:
    """Of one that lacks pods: why, as far as this account may read it, and where to read more."""
    named = f"replicasets -n {each.namespace}"
    if each.plural == "statefulsets":
        named = f"statefulset -n {each.namespace} {each.name}"
    lasts, shows = "It does not heal by itself while a pod is refused", f"`kubectl describe {named}` shows"
    why = live.refusals.get(each)
    return f"{lasts}: {why}. {shows} more" if why else f"{lasts}. {shows} why one is missing"


def _operator(stack: StackSettings, live: Live) -> Iterator[Problem]:
    """Of an operator whose Deployment was not read."""
    if live.operator_pods is None or stack.operator.install == "existing" or any(map(is_ready_pod, live.operator_pods)):
        return
    short, where = "the KubeRay operator does not run", f"in namespace {stack.operator.namespace}"
    if live.operator_pods:
        pods = f"`kubectl describe pods -n {stack.operator.namespace}` shows why"
        yield Problem(short, f"the KubeRay operator is not ready {where}: {_STALE}. {pods}")
    elif not any(each.name == OPERATOR for each in live.workloads):
        again = f"If its Deployment is gone, {_PUT_BACK}; if it is scaled to 0, scale it back"
        yield Problem(short, f"the KubeRay operator has no pod {where}: {_STALE}. {again}")
