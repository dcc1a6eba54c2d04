"""Rules for combinations of RayCluster settings. What KubeRay refuses in the rendered object is checked in kuberay/."""

import functools
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from components.ray_cluster.settings import ClusterTemplateSettings, RayClusterSettings
from components.rollout.templates import recreates
from components.storage.settings import mount_problems
from core.problems import Path, Problem, raise_problems
from core.types import MOST_PODS
from core.versions import image_version, version_tuple
from kuberay.releases import FIRST_RAY_WITH_DRAIN, FIRST_RAY_WITH_REDIS_USERS, FIRST_RAY_WITH_TOKENS


def _valid(cluster: RayClusterSettings) -> RayClusterSettings:
    raise_problems(problems_of(cluster))
    return cluster


ValidRayCluster = Annotated[RayClusterSettings, AfterValidator(_valid)]
"""Settings of a RayCluster without conflicts."""


@functools.cache
def _adapter() -> TypeAdapter[ValidRayCluster]:
    return TypeAdapter(ValidRayCluster)


def valid(values: Any) -> RayClusterSettings:
    """The settings in a mapping, by the keys of a stack file. Raises pydantic.ValidationError."""
    return _adapter().validate_python(values, by_alias=True, by_name=False)


def problems_of(cluster: RayClusterSettings) -> Iterator[Problem]:
    """All conflicts between settings; paths in the cluster's settings."""
    yield from problems_of_template(cluster)
    yield from _updates(cluster)
    yield from _idle_termination(cluster)


def problems_of_template(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    """The conflicts between settings that the cluster of a RayJob has, too."""
    yield from _images(cluster)
    yield from _authentication(cluster)
    yield from _set_twice(cluster)
    yield from _network_topology(cluster)
    yield from _fault_tolerance(cluster)
    yield from _of_kuberay(cluster)
    yield from _drain(cluster)
    yield from _pods_of_groups(cluster)
    yield from mount_problems(cluster.storage, cluster.volumes, cluster.volume_mounts)
    if not cluster.scales:
        yield from _without_autoscaler(cluster)
    bounds = (cluster.min_workers, cluster.initial_workers, cluster.max_workers)
    yield from replica_bounds((), bounds, ("minWorkers", "initialWorkers", "maxWorkers"))


def replica_bounds(
    path: Path,
    bounds: tuple[int | None, int | None, int | None],
    names: tuple[str, str, str] = ("minReplicas", "replicas", "maxReplicas"),
) -> Iterator[Problem]:
    """Problems of minimum, initial and maximum replicas: in this order they must not decrease. None: not set."""
    configured = [(name, value) for name, value in zip(names, bounds, strict=True) if value is not None]
    for (name, value), (next_name, next_value) in pairwise(configured):
        if value > next_value:
            message = f"{name} {value} is more than {next_name} {next_value}: lower {name} or raise {next_name}"
            yield Problem((*path, name), value, message, "replica-bounds")


def _images(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    if not cluster.verify_image_tag:
        return
    groups = [(("workerGroups", index, "image"), group.image) for index, group in enumerate(cluster.worker_groups)]
    images: list[tuple[Path, str | None]] = [
        (("image",), cluster.image),
        (("head", "image"), cluster.head.image),
        *groups,
    ]
    for path, image in images:
        if image is not None and (message := _wrong_tag(image, cluster.ray_version)):
            yield Problem(path, image, message, "image-version")


def _wrong_tag(image: str, version: str) -> str | None:
    tagged = image_version(image)
    if tagged is None:
        return (
            f"the version of Ray in image {image!r} cannot be determined from its tag: use a tag that starts with "
            f"{version}, or set verifyImageTag to false if it does have Ray {version}"
        )
    if tagged != version:
        return (
            f"rayVersion is {version!r} but image {image!r} has Ray {tagged}: "
            f"set rayVersion to {tagged}, or use the image of {version}"
        )
    return None


def _authentication(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    options = cluster.auth_options
    if options and options.mode == "token" and not cluster.knows_tokens:
        message = (
            f"authOptions.mode 'token' needs Ray {FIRST_RAY_WITH_TOKENS} or later, and rayVersion is "
            f"{cluster.ray_version!r}: raise rayVersion, or set authOptions.mode to disabled"
        )
        yield Problem(("authOptions", "mode"), options.mode, message, "token-needs-ray")


def _set_twice(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    configured = cluster.model_fields_set
    if cluster.auto_scaling_mode == "disabled" and "autoscaling" in configured and cluster.autoscaling:
        message = "autoScalingMode is disabled and autoscaling is true: remove one of them"
        yield Problem(("autoScalingMode",), "disabled", message, "said-twice")
    if cluster.target_utilization is not None and cluster.auto_scaling_mode is not None:
        message = "targetUtilization and autoScalingMode both set how fast workers are added: remove one of them"
        yield Problem(("targetUtilization",), cluster.target_utilization, message, "said-twice")
    if cluster.idle_timeout_minutes is not None and "idle_timeout" in configured:
        message = f"idleTimeout {cluster.idle_timeout!r} already sets it: remove one of them"
        yield Problem(("idleTimeoutMinutes",), cluster.idle_timeout_minutes, message, "said-twice")
    if cluster.pod_defaults == "none" and "run_as_user" in configured:
        message = "podDefaults none adds no user to the pods: remove runAsUser, or podDefaults"
        yield Problem(("runAsUser",), cluster.run_as_user, message, "said-twice")


def _updates(cluster: RayClusterSettings) -> Iterator[Problem]:
    updates = cluster.updates
    if "limit" in updates.model_fields_set and updates.strategy != "drain":
        message = f"limit has no effect with strategy {updates.strategy}: remove it, or set strategy to drain"
        yield Problem(("updates", "limit"), updates.limit, message, "updates")
    if "strategy" in updates.model_fields_set and updates.strategy != "none" and recreates(cluster.overrides):
        message = (
            f"strategy {updates.strategy} has no effect if KubeRay deletes all pods at each edit: remove it, or "
            "upgradeStrategy from overrides"
        )
        yield Problem(("updates", "strategy"), updates.strategy, message, "updates")


def _idle_termination(cluster: RayClusterSettings) -> Iterator[Problem]:
    if cluster.idle_termination_options and "suspend" in cluster.overrides:
        message = "conflicts with idleTerminationOptions, which decides whether the cluster is suspended: remove one"
        yield Problem(("overrides", "suspend"), cluster.overrides["suspend"], message, "said-twice")


def _fault_tolerance(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    if not cluster.fault_tolerance:
        return
    options = "gcsFaultToleranceOptions"
    if options in cluster.overrides:
        message = (
            "conflicts with faultTolerance, which sets it for the stack's redis: remove it, or, for a Redis that is "
            "not in the stack file, remove faultTolerance"
        )
        yield Problem(("overrides", options), None, message, "said-twice")
    if version_tuple(cluster.ray_version) < version_tuple(FIRST_RAY_WITH_REDIS_USERS):
        message = (
            f"faultTolerance needs Ray {FIRST_RAY_WITH_REDIS_USERS} or later, which supports users of Redis, and "
            f"rayVersion is {cluster.ray_version!r}: raise rayVersion, or remove faultTolerance"
        )
        yield Problem(("faultTolerance",), True, message, "redis-users-need-ray")


def _of_kuberay(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    """What KubeRay 1.7 can do itself and the stack does already."""
    if "networkPolicy" in cluster.overrides:
        message = (
            "the stack makes the NetworkPolicies of a tenant's RayClusters, and with KubeRay's beside them pods may do "
            "what either allows: remove it, and use network of the tenant"
        )
        yield Problem(("overrides", "networkPolicy"), None, message, "said-twice")
    if cluster.tls and "tlsOptions" in cluster.overrides:
        message = "conflicts with tls, by which the stack makes the certificates: remove one"
        yield Problem(("overrides", "tlsOptions"), None, message, "said-twice")


def _pods_of_groups(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    """Groups with more pods than a cluster of Kubernetes may have; KubeRay multiplies in 32 bits."""
    for index, group in enumerate(cluster.worker_groups):
        hosts = group.num_of_hosts or 1
        numbers = {"minReplicas": group.min_replicas, "replicas": group.replicas, "maxReplicas": group.max_replicas}
        for key, number in numbers.items():
            if hosts > 1 and number is not None and number * hosts > MOST_PODS:
                message = f"{number} workers of {hosts} hosts are more than {MOST_PODS} pods: set less"
                yield Problem(("workerGroups", index, key), number, message, "replica-bounds")


def _drain(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    if cluster.drains:
        return
    message = (
        f"Ray drains from {FIRST_RAY_WITH_DRAIN} on, and rayVersion is {cluster.ray_version!r}: raise rayVersion, or "
        "remove it"
    )
    for path, drain in drain_timeouts(cluster):
        yield Problem(path, drain, message, "drain-needs-ray")


def drain_timeouts(cluster: ClusterTemplateSettings) -> Iterator[tuple[Path, str]]:
    """Each `drainTimeout` in the settings of a cluster, with its path there."""
    parts: list[tuple[Path, str | None]] = [
        ((), cluster.drain_timeout),
        *((("workers", index), workers.drain_timeout) for index, workers in enumerate(cluster.workers)),
        *((("workerGroups", index), group.drain_timeout) for index, group in enumerate(cluster.worker_groups)),
    ]
    yield from (((*path, "drainTimeout"), drain) for path, drain in parts if drain is not None)


def _network_topology(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    topology = cluster.network_topology
    if topology and topology.mode == "soft" and topology.highest_tier_allowed is not None:
        message = "has no effect with mode soft, which may span all tiers: remove it, or set mode to hard"
        path = ("networkTopology", "highestTierAllowed")
        yield Problem(path, topology.highest_tier_allowed, message, "topology-tier")


_AUTOSCALERS = {
    "auto_scaling_mode": "autoScalingMode",
    "target_utilization": "targetUtilization",
    "idle_timeout": "idleTimeout",
    "idle_timeout_minutes": "idleTimeoutMinutes",
}
"""Fields that only the autoscaler uses, and their keys."""


def _without_autoscaler(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    message = "has no effect in a cluster that does not scale: remove it, or set autoscaling to true"
    for field, key in _AUTOSCALERS.items():
        value = getattr(cluster, field)
        if field in cluster.model_fields_set and value not in (None, "disabled"):
            yield Problem((key,), value, message, "no-autoscaler")
    sized: list[tuple[Path, str | None]] = [
        *((("workerGroups", index), group.idle_timeout) for index, group in enumerate(cluster.worker_groups)),
        *(
            (("workers", index, "variants", at), variant.idle_timeout)
            for index, workers in enumerate(cluster.workers)
            for at, variant in enumerate(workers.variants or ())
        ),
    ]
    for path, idle_timeout in sized:
        if idle_timeout is not None:
            yield Problem((*path, "idleTimeout"), idle_timeout, message, "no-autoscaler")
