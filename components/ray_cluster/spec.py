"""Renders the settings of a RayCluster into its spec. Pure functions."""

import json
from collections.abc import Callable
from typing import Any

from components.logs.settings import LogsSettings
from components.priority_classes.settings import NO_PRIORITIES, PriorityNames
from components.ray_cluster.fault_tolerance import OPTIONS, RedisPlace, beside_head, options
from components.ray_cluster.logs import log_sidecar
from components.ray_cluster.node_settings import WorkersSettings
from components.ray_cluster.pods import (
    HEAD_CONTAINER,
    WORKER_CONTAINER,
    Beside,
    Body,
    PodIdentity,
    container,
    container_defaults,
    for_tls,
    merged_over,
    placement,
    template,
    with_autoscaler_token,
    with_short_grace_period,
)
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.worker_groups import WorkerGroup, all_groups, pool_named
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem, Problems
from core.types import seconds

DASHBOARD_PORT = 8265
CLIENT_PORT = 10001

HEAD_PORTS = {
    "gcs-server": 6379,
    "dashboard": DASHBOARD_PORT,
    "client": CLIENT_PORT,
    "metrics": 8080,
    "serve": 8000,
}
"""Ports by KubeRay's names (ray-operator/controllers/ray/utils/constant.go)."""

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
    """The spec, with the overrides merged into it. The arguments are those of `manifests.ray_cluster`.

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
        spec[OPTIONS] = options(redis, settings)
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
    options = {**autoscaler_options(settings), **container_defaults(settings), **secured}
    template, options = with_autoscaler_token(settings, with_short_grace_period(settings, head["template"]), options)
    head = {**head, "template": template}
    return {"enableInTreeAutoscaling": True, "autoscalerOptions": options, "headGroupSpec": head}


def custom_resources(group: WorkerGroup) -> dict[str, int]:
    """Ray custom resources that a worker offers: its GPUs by their product's name, and `full-worker`."""
    product = group.pool.gpu_product if group.pool else None
    resources = {product: group.gpus} if product and group.gpus else {}
    return {**resources, **({FULL_WORKER: 1} if group.whole_node else {})}


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


def _head(settings: RayClusterSettings, pools: tuple[NodePool, ...], identity: PodIdentity, beside: Beside) -> Body:
    head = settings.head
    amounts = {"cpu": head.cpu, "memory": head.memory}
    ray = container(
        settings, HEAD_CONTAINER, head.image, amounts, {**beside.env, **settings.env, **head.env}, beside.mounts
    )
    if beside.variables:
        ray["env"] = [*beside.variables, *ray.get("env", ())]
    ray["ports"] = [{"name": name, "containerPort": port} for name, port in HEAD_PORTS.items()]
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
    amounts = {"cpu": group.cpu, "memory": group.memory, GPU_RESOURCE: str(group.gpus or "")}
    requested = {resource: quantity for resource, quantity in amounts.items() if quantity}
    numbers = {"replicas": group.replicas, "minReplicas": group.min_replicas, "maxReplicas": group.max_replicas}
    return {
        "groupName": group.name,
        **{key: number for key, number in numbers.items() if number is not None},
        **({"idleTimeoutSeconds": seconds(group.idle_timeout)} if group.idle_timeout is not None else {}),
        **(_of_pool if isinstance(group.settings, WorkersSettings) else _of_worker_group)(
            settings, group, requested, identity, beside
        ),
    }


def _of_pool(
    settings: RayClusterSettings, group: WorkerGroup, amounts: dict[str, str], identity: PodIdentity, beside: Beside
) -> Body:
    env = {**beside.env, **ONE_THREAD, **settings.env, **group.settings.env}
    ray = container(settings, WORKER_CONTAINER, None, amounts, env, beside.mounts)
    ray["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}
    params = {"block": "true", "num-gpus": str(group.gpus)}
    if resources := custom_resources(group):
        # JSON twice: a shell evaluates the value, and Ray needs the quotes.
        params["resources"] = json.dumps(json.dumps(resources))
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
        "rayStartParams": dict(configured.ray_start_params),
        "template": template(settings, ray, identity, group.pool, group.pod_templates, beside),
    }


_ONE_NODE_FOR_EACH = 1.0
"""`upscaling_speed` of KubeRay's Conservative: at most as many workers start at once as there are nodes. Its other
modes have no limit (Ray: python/ray/autoscaler/_private/kuberay/autoscaling_config.py)."""


def autoscaler_options(settings: RayClusterSettings) -> dict[str, Any]:
    """The options of a cluster that scales."""
    options = {
        # The operator reads the version, so Ray's default of v2 is not enough.
        "version": "v2",
        "idleTimeoutSeconds": idle_seconds(settings),
        "imagePullPolicy": settings.image_pull_policy,
    }
    mode = upscaling_mode(settings)
    return {**options, "upscalingMode": mode} if mode else options


def idle_seconds(settings: RayClusterSettings) -> int:
    """Seconds after which the autoscaler removes an idle worker."""
    minutes = settings.idle_timeout_minutes
    return seconds(settings.idle_timeout) if minutes is None else minutes * 60


def upscaling_mode(settings: RayClusterSettings) -> str | None:
    """KubeRay's upscaling mode; None if it is not set."""
    if settings.target_utilization is not None:
        # Ray's own conversion (python/ray/autoscaler/_private/autoscaler.py, target_utilization_fraction).
        upscaling_speed = 100 / settings.target_utilization - 1
        return "Conservative" if upscaling_speed <= _ONE_NODE_FOR_EACH else "Default"
    return settings.auto_scaling_mode.capitalize() if settings.auto_scaling_mode else None
