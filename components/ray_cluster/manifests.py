"""What a RayCluster's settings become: a body as the API server takes it. Pure functions."""

import json
from collections.abc import Mapping
from typing import Any

from ..nodes import GPU_PRODUCT_LABEL, GPU_RESOURCE, NodePool
from ..strategic_merge import merge
from ..types import seconds
from .settings import RayClusterSettings, WorkersSettings, pool_named
from .worker_groups import WorkerGroup, worker_groups

Body = dict[str, Any]

API_VERSION = "ray.io/v1"

DASHBOARD_PORT = 8265
CLIENT_PORT = 10001

HEAD_PORTS = {
    "gcs-server": 6379,
    "dashboard": DASHBOARD_PORT,
    "client": CLIENT_PORT,
    "metrics": 8080,
    "serve": 8000,
}
"""Ports by the names that KubeRay knows (ray-operator/controllers/ray/utils/constant.go)."""

FULL_WORKER = "full-worker"
"""Ray custom resource of a worker that has all GPUs of its node; ado's SFTTrainer reserves a whole node by it."""

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""One thread in each process: Ray starts a process for each CPU, and each would start a thread for each CPU."""


def all_groups(
    settings: RayClusterSettings, pools: tuple[NodePool, ...]
) -> tuple[tuple[WorkersSettings, NodePool, WorkerGroup], ...]:
    """Every worker group of a cluster with what it was derived from.

    Raises ValueError where a pool is not there, a variant does not fit, or two groups have one name.
    """
    found = tuple(
        (workers, pool, group)
        for workers in settings.workers
        for pool in [pool_named(pools, workers.pool)]
        for group in worker_groups(pool, workers)
    )
    names = [group.name for _, _, group in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"worker group name {', '.join(repeated)} is used twice: give each variant a name of its own")
    return found


def ray_cluster(settings: RayClusterSettings, pools: tuple[NodePool, ...], service_account: Any = None) -> Body:
    """The `ray.io/v1` RayCluster. Fields that were not set stay KubeRay's to default.

    `service_account`: of head and workers where the settings name none, a name or what will become one. None: KubeRay
    makes one for the head.
    Raises ValueError as `all_groups` does, and where the head's pool cannot be told from others.
    """
    account = settings.service_account or service_account
    spec: Body = {
        "rayVersion": settings.ray_version,
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            # The operator's own logic keys on the version, so Ray's default of v2 is not enough.
            "version": "v2",
            "idleTimeoutSeconds": seconds(settings.idle_timeout),
            "imagePullPolicy": settings.image_pull_policy,
        },
        "headGroupSpec": _head(settings, pools, account),
        "workerGroupSpecs": [_worker_group(settings, *group, account) for group in all_groups(settings, pools)],
    }
    if auth := _auth(settings):
        spec["authOptions"] = auth
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCluster",
        "metadata": {
            "name": settings.name,
            **({"labels": dict(settings.labels)} if settings.labels else {}),
            "annotations": {
                **settings.annotations,
                # In the foreground the garbage collector takes pods and clean-up Jobs from under the operator.
                "pulumi.com/deletionPropagationPolicy": "background",
            },
        },
        "spec": merge(spec, settings.overrides),
    }


def custom_resources(pool: NodePool, group: WorkerGroup) -> dict[str, int]:
    """Ray custom resources that a worker offers: its GPUs by their product's name, and `full-worker`."""
    resources = {pool.gpu_product: group.gpus} if pool.gpu_product and group.gpus else {}
    return {**resources, **({FULL_WORKER: 1} if group.whole_node else {})}


def _auth(settings: RayClusterSettings) -> Body:
    if settings.auth_options:
        return settings.auth_options.model_dump(by_alias=True, exclude_none=True)
    return {"mode": "token"} if settings.knows_tokens else {}


def _head(settings: RayClusterSettings, pools: tuple[NodePool, ...], account: Any) -> Body:
    head = settings.head
    container = _container(settings, "ray-head", {"cpu": head.cpu, "memory": head.memory}, {**settings.env, **head.env})
    container["ports"] = [{"name": name, "containerPort": port} for name, port in HEAD_PORTS.items()]
    return {
        "rayStartParams": {
            # No task runs on the head: one that filled its memory would take the cluster down.
            "num-cpus": "0",
            "num-gpus": "0",
            "dashboard-host": "0.0.0.0",  # noqa: S104 (inside the pod; a Service and a token stand before it)
            **head.ray_start_params,
        },
        "template": _template(settings, container, account, _head_placement(settings, pools)),
    }


def _head_placement(settings: RayClusterSettings, pools: tuple[NodePool, ...]) -> Body:
    if settings.head.pool is None:
        return {}
    placement = _placement(pool_named(pools, settings.head.pool))
    if not placement.keys() & {"nodeSelector", "affinity"}:
        raise ValueError(
            f"head.pool {settings.head.pool!r} has neither labels nor a gpuProduct to tell its nodes by: set labels of "
            "that pool, or remove head.pool"
        )
    return placement


def _worker_group(
    settings: RayClusterSettings, workers: WorkersSettings, pool: NodePool, group: WorkerGroup, account: str | None
) -> Body:
    resources = {"cpu": group.cpu, "memory": group.memory}
    if group.gpus:
        resources[GPU_RESOURCE] = str(group.gpus)
    container = _container(settings, "ray-worker", resources, {**ONE_THREAD, **settings.env, **workers.env})
    container["lifecycle"] = {"preStop": {"exec": {"command": ["/bin/sh", "-c", "ray stop"]}}}
    return {
        "groupName": group.name,
        "replicas": 0,
        "minReplicas": group.min_replicas,
        "maxReplicas": group.max_replicas,
        "rayStartParams": {**_start_params(pool, group), **workers.ray_start_params},
        "template": _template(settings, container, account, _placement(pool)),
    }


def _start_params(pool: NodePool, group: WorkerGroup) -> dict[str, str]:
    params = {"block": "true", "num-gpus": str(group.gpus)}
    if resources := custom_resources(pool, group):
        # Twice JSON: the value goes through a shell, which has to leave Ray the quotes.
        params["resources"] = json.dumps(json.dumps(resources))
    return params


def _container(settings: RayClusterSettings, name: str, amounts: Mapping[str, str], env: Mapping[str, str]) -> Body:
    container: Body = {
        "name": name,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "resources": {"limits": dict(amounts), "requests": dict(amounts)},
    }
    if env:
        container["env"] = [{"name": variable, "value": value} for variable, value in env.items()]
    if settings.volume_mounts:
        container["volumeMounts"] = list(settings.volume_mounts)
    return container


def _template(settings: RayClusterSettings, container: Body, account: Any, placement: Body) -> Body:
    # Autoscaler v2 replaces a pod that ended; the operator refuses any other restart policy.
    spec: Body = {"restartPolicy": "Never", "containers": [container], **placement}
    if account is not None:
        spec["serviceAccountName"] = account
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.volumes:
        spec["volumes"] = list(settings.volumes)
    return {"metadata": {"labels": dict(settings.labels)}, "spec": spec} if settings.labels else {"spec": spec}


def _placement(pool: NodePool) -> Body:
    placement: Body = {}
    if pool.gpu_product:
        term = {"key": GPU_PRODUCT_LABEL, "operator": "In", "values": [pool.gpu_product]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        placement["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if pool.labels:
        placement["nodeSelector"] = dict(pool.labels)
    if pool.taints:
        placement["tolerations"] = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            for taint in pool.taints
        ]
    return placement
