"""Pod templates of head and workers. Pure functions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.nodes import GPU_PRODUCT_LABEL, NodePool
from core.problems import Path, Problems
from core.strategic_merge import merge

from ..tls import manifests as tls
from . import pod_defaults
from .settings import RayClusterSettings

Body = dict[str, Any]

CLUSTER_LABEL = "ray.io/cluster"
NODE_TYPE_LABEL = "ray.io/node-type"
"""Labels of Ray's pods, which a pod template cannot change (ray-operator/controllers/ray/common/pod.go, labelPod)."""

HEAD_CONTAINER = "ray-head"
WORKER_CONTAINER = "ray-worker"
"""Names of Ray's containers. They are the first of their pods; KubeRay relies on that."""


@dataclass(frozen=True)
class Beside:
    """Additional parts of a pod of Ray."""

    init_containers: tuple[Body, ...] = ()
    """Init containers that start before all others."""

    volumes: tuple[Body, ...] = ()

    env: Mapping[str, str] = field(default_factory=dict)
    """Variables of Ray's container, which the cluster's own variables may override."""

    mounts: tuple[Body, ...] = ()
    """Mounts in Ray's container."""


NOTHING_BESIDE = Beside()


@dataclass(frozen=True)
class Standing:
    """Account and priority of a pod. None: not set."""

    account: Any = None
    """Name of the ServiceAccount, or its Output."""

    priority_class: str | None = None
    """Name of the PriorityClass, if pods get defaults."""


def container(
    settings: RayClusterSettings,
    name: str,
    image: str | None,
    amounts: Mapping[str, str],
    env: Mapping[str, str],
    mounts: Iterable[Body] = (),
) -> Body:
    """Ray's container. Its requests are its limits, so that no other pod can use its resources."""
    made: Body = {
        "name": name,
        "image": image or settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        **pod_defaults.ray_container(settings),
    }
    if amounts:
        made["resources"] = {"limits": dict(amounts), "requests": dict(amounts)}
    secured = for_tls(settings)
    if variables := [*secured["env"], *({"name": variable, "value": value} for variable, value in env.items())]:
        made["env"] = variables
    if mounted := [*settings.volume_mounts, *secured["volumeMounts"], *mounts]:
        made["volumeMounts"] = mounted
    return made


def for_tls(settings: RayClusterSettings) -> dict[str, list[Body]]:
    """`env` and `volumeMounts` for TLS of a container that runs Ray; empty if the cluster has no TLS."""
    if settings.tls is None:
        return {"env": [], "volumeMounts": []}
    env = [{"name": variable, "value": value} for variable, value in tls.ENVIRONMENT.items()]
    return {"env": env, "volumeMounts": [tls.MOUNT]}


def template(
    settings: RayClusterSettings,
    ray: Body,
    standing: Standing,
    pool: NodePool | None,
    over: Iterable[tuple[Path, Mapping[str, Any]]] = (),
    beside: Beside = NOTHING_BESIDE,
) -> Body:
    """The pod template around Ray's container `ray`, on the nodes of `pool`.

    `over`: pod templates that are merged into it, each with its path in the cluster's settings.
    Raises Problems if one cannot be merged.
    """
    # Autoscaler v2 replaces a pod that ended; the operator refuses any other restart policy.
    spec: Body = {
        "restartPolicy": "Never",
        "containers": [ray],
        **(placement(pool) if pool else {}),
        **pod_defaults.pod(settings, standing.priority_class),
    }
    if standing.account is not None:
        spec["serviceAccountName"] = standing.account
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    initial = list(beside.init_containers)
    if settings.tls is not None:
        certificate = tls.init_container(ray["name"] == HEAD_CONTAINER, ray["image"], settings.image_pull_policy)
        initial.append({**certificate, **pod_defaults.ray_container(settings)})
    if initial:
        spec["initContainers"] = initial
    of_tls = tls.volumes(settings.name) if settings.tls is not None else ()
    if volumes := [*settings.volumes, *of_tls, *beside.volumes]:
        spec["volumes"] = volumes
    made: Body = {"metadata": {"labels": dict(settings.labels)}, "spec": spec} if settings.labels else {"spec": spec}
    for path, fragment in over:
        made = laid_over(made, fragment, path)
    return pod_defaults.completed(settings, made)


def laid_over(base: Body, fragment: Mapping[str, Any], path: Path) -> Body:
    """`base` with the fragment of the settings at `path` merged into it. Raises Problems, with paths in the
    settings."""
    try:
        merged: Body = merge(base, fragment)
    except Problems as refused:
        raise Problems(problem.below(path) for problem in refused.problems) from refused
    return merged


def placement(pool: NodePool) -> Body:
    """The fields that bind pods to the nodes of a pool, as far as its labels and taints distinguish them."""
    placed: Body = {}
    if pool.gpu_product:
        term = {"key": GPU_PRODUCT_LABEL, "operator": "In", "values": [pool.gpu_product]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        placed["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if pool.labels:
        placed["nodeSelector"] = dict(pool.labels)
    if pool.taints:
        placed["tolerations"] = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            for taint in pool.taints
        ]
    return placed
