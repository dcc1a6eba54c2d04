"""Scaling of RayClusters."""

from core.types import Settings
from policies.cel import GROUPS, SCALES, of_ray
from policies.rule import Severity, Violations, rule
from policies.walk import RayCluster

_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_AUTOSCALING = "https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/configuring-autoscaling.html"


@rule(
    "ray-autoscaler-v2",
    Severity.MEDIUM,
    what="Ray's autoscaler is v2, and KubeRay knows it.",
    why="KubeRay reads this field: without it idle timeouts of groups are refused, and pods restart beside Ray.",
    source=f"{_AUTOSCALING}; kuberay ray-operator/controllers/ray/utils/util.go: IsAutoscalingV2Enabled",
    fix="Set autoscalerOptions.version: v2.",
    kinds=_CLUSTERS,
    cel=of_ray(f"!({SCALES}) || ray.?autoscalerOptions.?version.orValue('') == 'v2'"),
)
def autoscaler_v2(cluster: RayCluster) -> Violations:
    """Requires the version if the cluster scales."""
    version = cluster.spec.at("autoscalerOptions", "version")
    if cluster.scales and version.text != "v2":
        yield version.wrong(f"is {version.shown()}" if version.is_set else "is not set")


class IdleTimeout(Settings):
    """Options of ray-idle-timeout-bounded."""

    seconds: int = 3600
    """The longest that an idle worker may be kept."""


def _idle_timeout_bounded_in_cel(options: IdleTimeout) -> str:
    most = options.seconds
    return (
        f"!({SCALES}) || ray.?autoscalerOptions.?idleTimeoutSeconds.orValue(0) <= {most}"
        f" && {GROUPS}.all(group, group.?idleTimeoutSeconds.orValue(0) <= {most})"
    )


@rule(
    "ray-idle-timeout-bounded",
    Severity.MEDIUM,
    what="Workers that have nothing to do are taken away.",
    why="Idle clusters that keep their GPUs are the most frequent complaint.",
    source=f"{_AUTOSCALING}; kuberay#2998, kuberay#4033",
    fix="Set autoscalerOptions.idleTimeoutSeconds, and those of groups, to a shorter time.",
    kinds=_CLUSTERS,
    cel=of_ray(_idle_timeout_bounded_in_cel),
)
def idle_timeout_bounded(cluster: RayCluster, options: IdleTimeout) -> Violations:
    """The timeouts are not longer than the option. Ray's default is one minute."""
    if not cluster.scales:
        return
    groups = cluster.spec.at("workerGroupSpecs").items()
    for options_or_group in (cluster.spec.at("autoscalerOptions"), *groups):
        timeout = options_or_group.at("idleTimeoutSeconds")
        if timeout.number is not None and timeout.number > options.seconds:
            yield timeout.wrong(f"{timeout.shown()} s is longer than {options.seconds} s")


class WorkersMost(Settings):
    """Options of ray-most-workers."""

    replicas: int = 1000
    """The largest maxReplicas that is allowed."""


def _most_workers_in_cel(options: WorkersMost) -> str:
    hosts = "(group.?numOfHosts.orValue(0) == 0 ? 1 : group.numOfHosts)"
    asked = "[group.?replicas.orValue(0), group.?minReplicas.orValue(0)]"
    return (
        f"{GROUPS}.all(group, ({SCALES}) ? group.?maxReplicas.orValue(0) * {hosts} <= {options.replicas}"
        f" : {asked}.all(asked, asked * {hosts} <= {options.replicas}))"
    )


@rule(
    "ray-most-workers",
    Severity.MEDIUM,
    what="No worker group may grow without end.",
    why="A loop that submits tasks takes every node, or makes a cloud's autoscaler buy more.",
    source=_AUTOSCALING,
    fix="Set maxReplicas to what the team may have.",
    kinds=_CLUSTERS,
    cel=of_ray(_most_workers_in_cel),
)
def most_workers(cluster: RayCluster, options: WorkersMost) -> Violations:
    """`maxReplicas` times hosts is at most the option; of a cluster that does not scale, `replicas` and `minReplicas`.

    There the API server's default for `maxReplicas`, 2^31 - 1, starts no pod.
    """
    fields = ("maxReplicas",) if cluster.scales else ("replicas", "minReplicas")
    for group in cluster.spec.at("workerGroupSpecs").items():
        hosts = group.at("numOfHosts").number or 1
        for most in (group.at(field) for field in fields):
            if most.number is not None and most.number * hosts > options.replicas:
                yield most.wrong(f"{most.number * hosts} pods are more than {options.replicas}")


@rule(
    "ray-gpu-idle-groups",
    Severity.LOW,
    what="Groups with GPUs keep no idle workers.",
    why="The autoscaler never removes minReplicas, whatever the idle timeout is.",
    source=_AUTOSCALING,
    fix="Set minReplicas: 0, or make an exception for a cluster that is always in use.",
    kinds=_CLUSTERS,
)
def gpu_idle_groups(cluster: RayCluster) -> Violations:
    """Rejects `minReplicas` if the cluster scales and its workers have GPUs."""
    if not cluster.scales:
        return
    for pod in cluster.workers():
        assert pod.group is not None
        least = pod.group.at("minReplicas")
        if least.number and any(pod.accelerators()):
            yield least.wrong(f"{least.shown()} workers keep their GPUs when they are idle")
