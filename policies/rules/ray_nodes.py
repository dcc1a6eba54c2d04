"""Heads and workers of RayClusters: resources, credentials and scheduling."""

from core.nodes import ACCELERATOR
from core.types import Settings
from kuberay.ray_start import DRAIN_VARIABLE, ENDS_RAY, ends_ray
from policies.cel import GROUPS, HEAD, HEAD_CONTAINER, of_ray, quantity, text
from policies.rule import Severity, Violations, rule
from policies.rules import remedies
from policies.walk import Pod, RayCluster

_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_ALONE_IN_CEL = f"{GROUPS}.size() == 0"
"""Whether the cluster has no workers, so that the head does the work."""


def _no_gpus_in_cel(container: str) -> str:
    none = f"{quantity('limits[r]')}.compareTo(quantity('0')) == 0"
    return (
        f"[{container}.?resources.?limits.orValue({{}})]"
        f".all(limits, limits.all(r, !r.matches({text(ACCELERATOR.pattern)}) || {none}))"
    )


@rule(
    "ray-head-zero-cpu",
    Severity.MEDIUM,
    what="No task or actor runs on the head.",
    why="A task that fills the head's memory stops the cluster.",
    source="https://docs.ray.io/en/latest/cluster/vms/user-guides/large-cluster-best-practices.html",
    fix='Set headGroupSpec.rayStartParams.num-cpus: "0".',
    kinds=_CLUSTERS,
    cel=of_ray(
        f"{_ALONE_IN_CEL}"
        f" || [string({HEAD}.?resources[?'CPU'].or({HEAD}.?rayStartParams[?'num-cpus']).orValue('not set'))]"
        ".all(cpus, isQuantity(cpus) && quantity(cpus).compareTo(quantity('0')) == 0)"
    ),
)
def head_zero_cpu(cluster: RayCluster) -> Violations:
    """The head offers no CPU to Ray, in its start parameters or its group's resources, if the cluster has workers."""
    group = cluster.spec.at("headGroupSpec")
    cpus, group_cpu = group.at("rayStartParams", "num-cpus"), group.at("resources", "CPU")
    if not cluster.alone and (group_cpu if group_cpu.is_set else cpus).quantity != 0:
        yield cpus.wrong(f"is {cpus.shown()}: tasks run on the head" if cpus.is_set else "tasks run on the head")


@rule(
    "ray-head-zero-gpu",
    Severity.MEDIUM,
    what="The head has no GPU, and no other accelerator.",
    why="The head keeps it for as long as the cluster runs, and no task should run there.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/gpu.html",
    fix="Remove GPUs from the limits of the head's container.",
    kinds=_CLUSTERS,
    cel=of_ray(f"{_ALONE_IN_CEL} || {_no_gpus_in_cel(HEAD_CONTAINER)}"),
)
def head_zero_gpu(cluster: RayCluster) -> Violations:
    """Rejects GPUs and other accelerators in the limits of the head's container if the cluster has workers."""
    if cluster.alone:
        return
    for resource, amount in cluster.head.accelerators():
        yield amount.wrong(f"the head keeps {amount.shown()} of {resource}")


@rule(
    "ray-worker-no-sa-token",
    Severity.HIGH,
    what="Workers have no token of Kubernetes.",
    why="Otherwise a task can call the API server with the rights of the worker's account.",
    source="https://kubernetes.io/docs/concepts/security/service-accounts/#assign-to-pod; kuberay#1416",
    fix="Set automountServiceAccountToken: false in the workers' pod templates.",
    kinds=_CLUSTERS,
    remedy=remedies.no_token_in_workers,
    cel=of_ray(
        "ray.?authOptions.?enableK8sTokenAuth.orValue(false) == true || "
        f"{GROUPS}.all(group, group.?template.?spec.?automountServiceAccountToken.orValue(true) == false)"
    ),
)
def worker_no_token(cluster: RayCluster) -> Violations:
    """The token is not mounted, unless Ray authenticates with Kubernetes tokens, which workers need."""
    if cluster.spec.at("authOptions", "enableK8sTokenAuth").value is True:
        return
    for pod in cluster.workers():
        automount = pod.spec.at("automountServiceAccountToken")
        if automount.value is not False:
            yield automount.wrong("tasks can use the account's token")


@rule(
    "ray-head-priority",
    Severity.LOW,
    what="The head has priority over its workers.",
    why="On full nodes the scheduler evicts pods of the lowest priority, and a cluster without its head is lost.",
    source="https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/",
    fix="Give the head a PriorityClass that is higher than the workers'.",
    kinds=_CLUSTERS,
)
def head_priority(cluster: RayCluster) -> Violations:
    """The head has a priority class that no worker has."""
    if cluster.alone:
        return
    head = cluster.head.spec.at("priorityClassName")
    if not head.is_set:
        yield head.wrong("is not set")
    elif head.text in [pod.spec.at("priorityClassName").text for pod in cluster.workers()]:
        yield head.wrong(f"{head.shown()} is the workers' too")


@rule(
    "ray-gpu-node-affinity",
    Severity.MEDIUM,
    what="Workers with GPUs or other accelerators select their nodes.",
    why="In a cluster with two kinds of GPUs they get either, and a job runs at the speed of the slowest worker.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/gpu.html",
    fix="Set nodeSelector or a node affinity, for example on nvidia.com/gpu.product.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"{GROUPS}.all(group, group.?template.?spec.?nodeSelector.orValue({{}}).size() > 0"
        " || group.?template.?spec.?affinity.?nodeAffinity.orValue({}).size() > 0"
        f" || {_no_gpus_in_cel('group.?template.?spec.?containers[?0]')})"
    ),
)
def gpu_node_affinity(cluster: RayCluster) -> Violations:
    """Requires a node selector or a node affinity that is not empty: charts write `nodeSelector: {}` for none."""
    for pod in cluster.workers():
        selectors = (pod.spec.at("nodeSelector"), pod.spec.at("affinity", "nodeAffinity"))
        if any(pod.accelerators()) and not any(list(each.entries()) for each in selectors):
            yield pod.spec.at("nodeSelector").wrong("runs on any node with an accelerator")


class HeadMemory(Settings):
    """Options of ray-head-memory."""

    gibibytes: int = 2
    """The least memory that a head should have."""


def _head_memory_in_cel(options: HeadMemory) -> str:
    return (
        f"!{HEAD_CONTAINER}.?resources.?limits[?'memory'].hasValue() || "
        f"!{quantity(f'{HEAD_CONTAINER}.resources.limits.memory.value()')}"
        f".isLessThan(quantity('{options.gibibytes}Gi'))"
    )


@rule(
    "ray-head-memory",
    Severity.MEDIUM,
    what="The head has memory for the GCS and the dashboard.",
    why="A head that runs out of memory takes the cluster down with it.",
    source="https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/config.html; kuberay#4287",
    fix="Give the head's container more memory: 8Gi is a good beginning.",
    kinds=_CLUSTERS,
    cel=of_ray(_head_memory_in_cel),
)
def head_memory(cluster: RayCluster, options: HeadMemory) -> Violations:
    """The memory limit of the head is not less than the option."""
    limit = cluster.head.first.node.at("resources", "limits", "memory")
    if limit.quantity is not None and limit.quantity < options.gibibytes * 2**30:
        yield limit.wrong(f"{limit.shown()} is less than {options.gibibytes}Gi")


_GRACE = 30
"""Kubernetes' default of terminationGracePeriodSeconds."""

_AFTER_DRAIN = 10
"""Seconds that Ray needs beside its drain, at least."""

_DRAINS_AT = "SIGTERM"
"""The signal at which `ray start` drains its node; Kubernetes' default (ray, python/ray/scripts/scripts.py)."""


def _stops_in_cel() -> str:
    container = "worker.?template.?spec.?containers[?0]"
    variables = f"{container}.?env.orValue([]).filter(e, e.name == {text(DRAIN_VARIABLE)})"
    drains = f"{variables}.map(e, e.?value.orValue('0')).filter(v, isQuantity(v)).map(v, {quantity('v')})"
    before = f"{container}.?lifecycle.?preStop.?sleep.?seconds.orValue(0)"
    grace = f".?template.?spec.?terminationGracePeriodSeconds.orValue({_GRACE})"
    return (
        f"{HEAD}{grace} != 0 && {GROUPS}.all(worker, worker{grace} != 0"
        f" && {container}.?lifecycle.?stopSignal.orValue('{_DRAINS_AT}') == '{_DRAINS_AT}'"
        f" && !{container}.?lifecycle.?preStop.?exec.?command.orValue([])"
        f".map(part, string(part)).join(' ').matches({text(ENDS_RAY.pattern)})"
        f" && {drains}.all(drain, drain.compareTo(quantity('0')) == 0"
        f" || {quantity(f'worker{grace} - {before}')}.compareTo(drain.add({_AFTER_DRAIN})) >= 0))"
    )


@rule(
    "ray-worker-stops",
    Severity.MEDIUM,
    what="Pods have time to stop, and workers to finish their work.",
    why="Kubernetes kills what runs after the grace period. Ray 2.57 and later drains a worker at SIGTERM, and "
    "`ray stop` before that ends the tasks that would have been finished.",
    source="ray-project/ray#64454; kuberay#2724",
    fix="Remove terminationGracePeriodSeconds: 0, stopSignal, and the preStop hook that ends Ray. Give workers a grace "
    "period of ten seconds more than RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S and the hook's sleep.",
    kinds=_CLUSTERS,
    cel=of_ray(_stops_in_cel()),
)
def worker_stops(pod: Pod) -> Violations:
    """Rejects zero seconds, and for workers a hook or a signal that ends Ray, and a drain that the grace period cuts
    off."""
    if pod.ray is None:
        return
    seconds = pod.spec.at("terminationGracePeriodSeconds")
    if seconds.number == 0:
        yield seconds.wrong("is killed at once")
    if pod.role != "worker":
        return
    signal = pod.first.node.at("lifecycle", "stopSignal")
    if signal.is_set and signal.text != _DRAINS_AT:
        yield signal.wrong(f"{signal.shown()} ends Ray without a drain, which {_DRAINS_AT} starts")
    hook = pod.first.node.at("lifecycle", "preStop")
    command = hook.at("exec", "command")
    if ends_ray(part.text or "" for part in command.items()):
        yield command.wrong("ends running tasks before Ray drains the node")
    variable = pod.first.env(DRAIN_VARIABLE)
    drain = variable.at("value") if variable else None
    grace = _GRACE if seconds.number is None else seconds.number
    before = hook.at("sleep", "seconds").number or 0
    if drain and drain.quantity and grace and grace - before < drain.quantity + _AFTER_DRAIN:
        after = f" after {before} s of its hook" if before else ""
        yield seconds.wrong(f"{grace} s cut off a drain of {drain.text} s{after}")
