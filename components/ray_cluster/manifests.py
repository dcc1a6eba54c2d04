"""Renders the settings of a RayCluster into the body for the API server, with labels and an annotation for the batch
scheduler. Pure functions.

A RayJob has the same labels and annotation. A RayService copies its own to its RayCluster.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from components.logs.settings import LogsSettings
from components.priority_classes.settings import NO_PRIORITIES, PriorityNames
from components.queues.settings import RESERVED, Backend
from components.ray_cluster.pods import (
    CLUSTER_LABEL,
    NODE_TYPE_LABEL,
    OPTIONS,
    Beside,
    PodIdentity,
    RedisPlace,
    beside_head,
    container,
    container_defaults,
    drain_seconds,
    draining,
    fault_tolerance_options,
    for_tls,
    head_without_drain,
    log_sidecar,
    merged_over,
    placement,
    template,
    with_autoscaler_token,
    with_short_grace_period,
)
from components.ray_cluster.settings import RayClusterSettings, WorkersSettings
from components.ray_cluster.worker_groups import WorkerGroup, all_groups, pool_named
from core.body import Body
from core.nodes import NodePool
from core.problems import Problem, Problems
from core.types import seconds
from kuberay.offers import GPU, counted_by_autoscaler, resource_of_ray
from kuberay.ports import HEAD_PORTS
from kuberay.ray_start import DRAIN_VARIABLE
from kuberay.running import HEAD_CONTAINER, WORKER_CONTAINER
from kuberay.schedulers import KUEUE_QUEUE_LABEL, QUEUE_LABEL

PRIORITY_LABEL = "ray.io/priority-class-name"
TOPOLOGY_MODE_LABEL = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"
"""KubeRay creates the PodGroup from these
(ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go)."""

KUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
ELASTIC_ANNOTATION = ELASTIC_GATE = "kueue.x-k8s.io/elastic-job"
"""A label, and an annotation and a scheduling gate that Kueue reads (kueue, pkg/controller/constants/constants.go,
pkg/constants/constants.go and apis/kueue/v1beta2/workload_types.go)."""

PREEMPTABLE = "volcano.sh/preemptable"
"""Annotation of a pod: whether Volcano may evict it for other pods (volcano, pkg/scheduler/api/pod_info.go:
GetPodPreemptable)."""

LABELS_OF_A_NEW_CLUSTER = (TOPOLOGY_MODE_LABEL, TOPOLOGY_TIER_LABEL, KUEUE_QUEUE_LABEL)
"""Labels whose change needs a new RayCluster. KubeRay does not change the topology of an existing PodGroup, and running
pods would stay on their nodes. Kueue refuses a change of the queue (kueue, pkg/controller/jobframework/ validation.go:
validateUpdateForQueueName)."""

SETTINGS_BY_LABEL = {
    QUEUE_LABEL: "queue",
    KUEUE_QUEUE_LABEL: "queue",
    PRIORITY_LABEL: "priorityClass",
    KUEUE_PRIORITY_LABEL: "priorityClass",
    TOPOLOGY_MODE_LABEL: "networkTopology",
    TOPOLOGY_TIER_LABEL: "networkTopology",
}
"""The settings that determine a label, if the stack has a scheduler."""


@dataclass(frozen=True)
class Scheduling:
    backend: Backend | None = None
    """None: Kubernetes' own scheduler, or one that the stack file does not name."""

    queue: str | None = None
    """Queue that it waits in; None: the scheduler's default one."""

    @property
    def in_kueue(self) -> bool:
        """Whether Kueue suspends it until its queue has room."""
        return self.backend == "kueue" and self.queue is not None


NO_SCHEDULING = Scheduling()


def _scheduling_labels(settings: RayClusterSettings, scheduling: Scheduling) -> dict[str, str]:
    topology = settings.network_topology
    tier = topology.highest_tier_allowed if topology else None
    values: dict[str, str | None] = {}
    if scheduling.backend == "volcano":
        values = {
            QUEUE_LABEL: scheduling.queue,
            PRIORITY_LABEL: settings.priority_class,
            TOPOLOGY_MODE_LABEL: topology.mode if topology else None,
            TOPOLOGY_TIER_LABEL: None if tier is None else str(tier),
        }
    elif scheduling.backend == "kueue":
        values = {KUEUE_QUEUE_LABEL: scheduling.queue, KUEUE_PRIORITY_LABEL: settings.priority_class}
    return {label: value for label, value in values.items() if value is not None}


def _scheduling_annotations(settings: RayClusterSettings, scheduling: Scheduling) -> dict[str, str]:
    """The annotations of the RayCluster. With Kueue only RayClusters with this annotation can scale."""
    elastic = scheduling.in_kueue and settings.scales
    return {ELASTIC_ANNOTATION: "true"} if elastic else {}


def _gated(settings: RayClusterSettings, scheduling: Scheduling, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with pods that wait until Kueue has admitted their number, if the RayCluster scales.

    Kueue adds the gates to a new RayCluster, and refuses every later one without them (kueue,
    pkg/controller/jobs/raycluster/raycluster_webhook.go: Default and validateElasticJob).
    """
    if not (scheduling.in_kueue and settings.scales):
        return dict(spec)

    gate = {"name": ELASTIC_GATE}

    def gated(group: Mapping[str, Any]) -> Body:
        pod = group["template"]["spec"]
        others = (each for each in pod.get("schedulingGates") or () if each != gate)
        return {**group, "template": {**group["template"], "spec": {**pod, "schedulingGates": [*others, gate]}}}

    groups = [gated(group) for group in spec.get("workerGroupSpecs") or ()]
    return {**spec, "headGroupSpec": gated(spec["headGroupSpec"]), "workerGroupSpecs": groups}


def _retained_head(settings: RayClusterSettings, scheduling: Scheduling, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with a head that Volcano does not evict for another queue, unless its template sets the annotation.

    Volcano keeps as many pods as the gang needs, in any choice, and considers one node at a time (volcano,
    pkg/scheduler/plugins/gang/gang.go and actions/reclaim/reclaim.go). If a cluster has more workers than its gang
    needs, Volcano could evict a head that is alone on its node, and that ends all workers.
    """
    if scheduling.backend != "volcano" or settings.pod_defaults == "none":
        return dict(spec)
    head = spec["headGroupSpec"]
    template = head["template"]
    metadata = template.get("metadata") or {}
    annotations = {PREEMPTABLE: "false", **(metadata.get("annotations") or {})}
    retained = {**template, "metadata": {**metadata, "annotations": annotations}}
    return {**spec, "headGroupSpec": {**head, "template": retained}}


def _with_counted_replicas(scheduling: Scheduling, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with `replicas` of at least `minReplicas`, if Kueue admits the RayCluster.

    KubeRay starts at least `minReplicas`. Kueue counts `replicas` (kueue, pkg/controller/jobs/raycluster/common.go:
    BuildPodSets), and would admit a RayCluster that does not fit into its queue.
    """
    if not scheduling.in_kueue:
        return dict(spec)
    groups = [
        {**group, "replicas": max(group.get("replicas") or 0, group.get("minReplicas") or 0)}
        for group in spec.get("workerGroupSpecs") or ()
    ]
    return {**spec, "workerGroupSpecs": groups}


def settings_of_labels(labels: Mapping[str, str]) -> dict[str, Any]:
    """The stack file settings for the labels of a RayCluster; values without a setting are omitted."""
    mode, tier = labels.get(TOPOLOGY_MODE_LABEL), labels.get(TOPOLOGY_TIER_LABEL, "")
    allowed = {"highestTierAllowed": int(tier)} if mode == "hard" and tier.isascii() and tier.isdigit() else {}
    queue = labels.get(QUEUE_LABEL) or labels.get(KUEUE_QUEUE_LABEL)
    values = {
        "queue": None if queue in RESERVED else queue,
        "priorityClass": labels.get(PRIORITY_LABEL) or labels.get(KUEUE_PRIORITY_LABEL),
        "networkTopology": {"mode": mode, **allowed} if mode in ("hard", "soft") else None,
    }
    return {key: value for key, value in values.items() if value}


API_VERSION = "ray.io/v1"

TOKEN_KEY = "auth_token"  # noqa: S105 (a key, not a token)
"""Key of the Secret with a RayCluster's token (ray-operator/controllers/ray/utils/constant.go)."""


def head_service(name: str, spec: Mapping[str, Any]) -> str:
    """Name of the head's Service of a cluster (ray-operator/controllers/ray/utils/util.go, GenerateHeadServiceName)."""
    service = spec["headGroupSpec"].get("headService") or {}
    return (service.get("metadata") or {}).get("name") or f"{name}-head-svc"


def ray_cluster(
    settings: RayClusterSettings,
    pools: tuple[NodePool, ...],
    service_account: Any = None,
    priorities: PriorityNames = NO_PRIORITIES,
    redis: RedisPlace | None = None,
    scheduling: Scheduling = NO_SCHEDULING,
    logs: LogsSettings | None = None,
) -> Body:
    """The `ray.io/v1` RayCluster. KubeRay defaults the fields that are not set.

    `service_account`: of head and workers if the settings name none; a name or its Output. None: KubeRay creates one
    for the head.
    `priorities`: existing PriorityClasses for head and workers.
    `redis`: where the GCS stores its tables, if the settings ask for fault tolerance.
    `scheduling`: its scheduler and its queue.
    `logs`: where the logs of its pods go; None: they stay in the pods.
    Raises Problems, with paths in the settings, as `cluster_spec` does.
    """
    rendered = cluster_spec(settings, pools, service_account, priorities, redis, logs)
    spec = _retained_head(settings, scheduling, rendered)
    spec = _gated(settings, scheduling, _with_counted_replicas(scheduling, spec))
    labels = {**settings.labels, **_scheduling_labels(settings, scheduling)}
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCluster",
        "metadata": {
            "name": settings.name,
            **({"labels": labels} if labels else {}),
            "annotations": {
                **settings.annotations,
                **_scheduling_annotations(settings, scheduling),
                # In the foreground the garbage collector would delete pods and clean-up Jobs before the operator does.
                "pulumi.com/deletionPropagationPolicy": "background",
            },
        },
        "spec": spec,
    }


def requires_token(body: Body) -> bool:
    """Whether clients of the RayCluster need a token: by its `authOptions`, or by Ray's variable in the head."""
    if (body["spec"].get("authOptions") or {}).get("mode") == "token":
        return True
    env = body["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0].get("env", [])
    return {"name": "RAY_AUTH_MODE", "value": "token"} in env


def head_disruption_budget(settings: RayClusterSettings, label: str = CLUSTER_LABEL, heads: int = 1) -> Body:
    """The PodDisruptionBudget that prevents eviction of the head. An unhealthy head may be evicted.

    `label`: label of the pods with the name. `heads`: the most that have it at a time.
    """
    labels = {label: settings.name, NODE_TYPE_LABEL: "head"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{settings.name}-head"},
        "spec": {
            # Not maxUnavailable: a RayCluster has no scale subresource, so Kubernetes does not know its number of pods.
            "minAvailable": heads,
            "selector": {"matchLabels": labels},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


FULL_WORKER = "full-worker"
"""Ray custom resource of a worker that has all GPUs of its node; ado's SFTTrainer reserves a whole node by it."""

_NO_REDIS = Problem(
    ("faultTolerance",),
    True,
    "faultTolerance needs a Redis, and the stack has none: set ray-platform:redis ({} is enough), or remove it",
    "fault-tolerance-needs-redis",
)

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""One thread in each process: Ray starts a process for each CPU, and each would start a thread for each CPU."""


def cluster_spec(
    settings: RayClusterSettings,
    pools: tuple[NodePool, ...],
    service_account: Any = None,
    priorities: PriorityNames = NO_PRIORITIES,
    redis: RedisPlace | None = None,
    logs: LogsSettings | None = None,
) -> Body:
    """The spec, with the overrides merged into it. The arguments are those of `ray_cluster`.

    Raises Problems, with paths in the settings: as `all_groups` does, if the head's pool has no distinguishing labels,
    if a pod template or the overrides cannot be merged, and if fault tolerance is set and there is no Redis.
    """
    redis = redis if settings.fault_tolerance else None
    of_logs = log_sidecar(settings, logs)
    of_head = beside_head(settings, redis) + of_logs
    account = settings.service_account or service_account
    head, worker = PodIdentity(account, priorities.head), PodIdentity(account, priorities.worker)
    problems = [_NO_REDIS] if settings.fault_tolerance and redis is None else []
    spec: Body = {
        "rayVersion": settings.ray_version,
        **(_kept(problems, lambda: _head_that_scales(settings, pools, head, of_head)) or {}),
        "workerGroupSpecs": _kept(
            problems, lambda: [_worker_group(settings, group, worker, of_logs) for group in all_groups(settings, pools)]
        ),
    }
    if auth := _auth(settings):
        spec["authOptions"] = auth
    if redis:
        spec[OPTIONS] = fault_tolerance_options(redis, settings)
    overridden: Body = _kept(problems, lambda: merged_over(spec, settings.overrides, ("overrides",)))
    if problems:
        raise Problems(problems)
    return overridden


def _head_that_scales(
    settings: RayClusterSettings, pools: tuple[NodePool, ...], identity: PodIdentity, beside: Beside
) -> Body:
    """The head, with the autoscaler in its pod if the cluster scales."""
    head = _head(settings, pools, identity, beside)
    if not settings.scales:
        return {"headGroupSpec": head}
    secured = {key: value for key, value in for_tls(settings).items() if value}
    options = {**_autoscaler_options(settings), **container_defaults(settings), **secured}
    template, options = with_autoscaler_token(settings, with_short_grace_period(settings, head["template"]), options)
    head = {**head, "template": template}
    return {"enableInTreeAutoscaling": True, "autoscalerOptions": options, "headGroupSpec": head}


def custom_resources(group: WorkerGroup) -> dict[str, int]:
    """Ray custom resources that a worker offers: its GPUs by their product's name, other accelerators by Ray's name of
    them, and `full-worker`."""
    name = resource_of_ray(group.gpu_resource)
    product = group.pool.gpu_product if group.pool else None
    names = [each for each in (product, name) if each not in (None, GPU)] if group.gpus else []
    return {**{str(each): group.gpus for each in names}, **({FULL_WORKER: 1} if group.whole_node else {})}


def _uncounted(group: WorkerGroup) -> dict[str, str]:
    """Flags with the accelerators that Ray's autoscaler would not count by itself."""
    name = resource_of_ray(group.gpu_resource)
    if not group.gpus or name is None or counted_by_autoscaler(group.gpu_resource):
        return {}
    return {"num-gpus": str(group.gpus)} if name == GPU else {"resources": _for_shell({name: group.gpus})}


def _for_shell(resources: dict[str, int]) -> str:
    """JSON twice: a shell evaluates the value, and Ray needs the quotes."""
    return json.dumps(json.dumps(resources))


def _kept(problems: list[Problem], part: Callable[[], Any]) -> Any:
    """A part of the body; None if it cannot be rendered. Its problems are added to the list."""
    try:
        return part()
    except Problems as refused:
        problems += refused.problems
        return None


def _auth(settings: RayClusterSettings) -> Body:
    if settings.auth_options:
        return settings.auth_options.model_dump(by_alias=True, exclude_none=True)
    return {"mode": "token"} if settings.knows_tokens else {}


def _ports_of_template(template: Body) -> set[str]:
    """The names of the ports that a pod template gives the head's container: merged by their numbers, a name would
    stand twice. Values of other types have none; the CRD's schema refuses them."""
    spec = template.get("spec")
    containers = _mappings(spec.get("containers")) if isinstance(spec, dict) else []
    ray = next((each for each in containers if each.get("name") == HEAD_CONTAINER), {})
    return {str(each["name"]) for each in _mappings(ray.get("ports")) if "name" in each}


def _mappings(value: Any) -> list[Body]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _head(settings: RayClusterSettings, pools: tuple[NodePool, ...], identity: PodIdentity, beside: Beside) -> Body:
    head = settings.head
    amounts = {"cpu": head.cpu, "memory": head.memory}
    env = {**beside.env, **head_without_drain(settings), **settings.env, **head.env}
    ray = container(settings, HEAD_CONTAINER, head.image, amounts, env, beside.mounts)
    if beside.variables:
        ray["env"] = [*beside.variables, *ray.get("env", ())]
    own = _ports_of_template(head.pod_template)
    ray["ports"] = [{"name": name, "containerPort": port} for name, port in HEAD_PORTS.items() if name not in own]
    over = [(("head", "podTemplate"), head.pod_template)]
    return {
        "rayStartParams": {
            # No task runs on the head: a task that fills its memory would end the cluster.
            "num-cpus": "0",
            "num-gpus": "0",
            "dashboard-host": "0.0.0.0",  # noqa: S104 (inside the pod; a Service and a token protect it)
            **head.ray_start_params,
        },
        **({"serviceType": head.service_type} if head.service_type else {}),
        **({"labels": dict(head.labels)} if head.labels else {}),
        "template": template(settings, ray, identity, _head_pool(settings, pools), over, beside),
    }


def _head_pool(settings: RayClusterSettings, pools: tuple[NodePool, ...]) -> NodePool | None:
    name = settings.head.pool
    if name is None:
        return None
    pool = pool_named(pools, name, ("head", "pool"))
    if not placement(pool).keys() & {"nodeSelector", "affinity"}:
        message = (
            f"head.pool {name!r} has neither labels nor a gpuProduct that distinguish its nodes: set labels of that "
            "pool, or remove head.pool"
        )
        raise Problems([Problem(("head", "pool"), name, message, "head-pool")])
    return pool


def _worker_group(settings: RayClusterSettings, group: WorkerGroup, identity: PodIdentity, beside: Beside) -> Body:
    amounts = {"cpu": group.cpu, "memory": group.memory, group.gpu_resource: str(group.gpus or "")}
    requested = {resource: quantity for resource, quantity in amounts.items() if quantity}
    drain = drain_seconds(settings, group.settings)
    drained = Beside(env={} if drain is None else {DRAIN_VARIABLE: str(drain)})
    numbers = {"replicas": group.replicas, "minReplicas": group.min_replicas, "maxReplicas": group.max_replicas}
    render = _of_pool if isinstance(group.settings, WorkersSettings) else _of_worker_group
    rendered = render(settings, group, requested, identity, drained + beside)
    return {
        "groupName": group.name,
        **{key: number for key, number in numbers.items() if number is not None},
        **({"idleTimeoutSeconds": seconds(group.idle_timeout)} if group.idle_timeout is not None else {}),
        **rendered,
        "template": draining(drain, rendered["template"]),
    }


def _of_pool(
    settings: RayClusterSettings, group: WorkerGroup, amounts: dict[str, str], identity: PodIdentity, beside: Beside
) -> Body:
    env = {**beside.env, **ONE_THREAD, **settings.env, **group.settings.env}
    ray = container(settings, WORKER_CONTAINER, None, amounts, env, beside.mounts)
    params = {"block": "true", "num-gpus": str(group.gpus if resource_of_ray(group.gpu_resource) == GPU else 0)}
    if resources := custom_resources(group):
        params["resources"] = _for_shell(resources)
    return {
        "rayStartParams": {**params, **group.settings.ray_start_params},
        "template": template(settings, ray, identity, group.pool, group.pod_templates, beside),
    }


def _of_worker_group(
    settings: RayClusterSettings, group: WorkerGroup, amounts: dict[str, str], identity: PodIdentity, beside: Beside
) -> Body:
    configured = group.settings
    assert not isinstance(configured, WorkersSettings)
    env = {**beside.env, **settings.env, **configured.env}
    ray = container(settings, WORKER_CONTAINER, configured.image, amounts, env, beside.mounts)
    return {
        **({"numOfHosts": configured.num_of_hosts} if configured.num_of_hosts is not None else {}),
        **({"labels": dict(configured.labels)} if configured.labels else {}),
        "rayStartParams": {**_uncounted(group), **configured.ray_start_params},
        "template": template(settings, ray, identity, group.pool, group.pod_templates, beside),
    }


_ONE_NODE_FOR_EACH = 1.0
"""`upscaling_speed` of KubeRay's Conservative: at most as many workers start at once as there are nodes. Its other
modes have no limit (Ray: python/ray/autoscaler/_private/kuberay/autoscaling_config.py)."""


def _autoscaler_options(settings: RayClusterSettings) -> dict[str, Any]:
    options = {
        # The operator reads the version, so Ray's default of v2 is not enough.
        "version": "v2",
        "idleTimeoutSeconds": idle_seconds(settings),
        "imagePullPolicy": settings.image_pull_policy,
    }
    mode = _upscaling_mode(settings)
    return {**options, "upscalingMode": mode} if mode else options


def idle_seconds(settings: RayClusterSettings) -> int:
    """Seconds after which the autoscaler removes an idle worker."""
    minutes = settings.idle_timeout_minutes
    return seconds(settings.idle_timeout) if minutes is None else minutes * 60


def _upscaling_mode(settings: RayClusterSettings) -> str | None:
    """KubeRay's upscaling mode; None if it is not set."""
    if settings.target_utilization is not None:
        # Ray's own conversion (python/ray/autoscaler/_private/autoscaler.py, target_utilization_fraction).
        upscaling_speed = 100 / settings.target_utilization - 1
        return "Conservative" if upscaling_speed <= _ONE_NODE_FOR_EACH else "Default"
    return settings.auto_scaling_mode.capitalize() if settings.auto_scaling_mode else None
