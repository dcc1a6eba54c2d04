"""What a RayCluster's settings may not say together. What KubeRay refuses of the result is kuberay/'s."""

import functools
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any

from pydantic import AfterValidator, TypeAdapter

from core.problems import Path, Problem, Problems
from core.types import image_version, version_tuple

from ..rollout.templates import recreates
from .settings import RayClusterSettings


def _sound(cluster: RayClusterSettings) -> RayClusterSettings:
    if problems := list(problems_of(cluster)):
        raise Problems(problems)
    return cluster


SoundRayCluster = Annotated[RayClusterSettings, AfterValidator(_sound)]
"""Settings of a RayCluster that go together."""


@functools.cache
def _adapter() -> TypeAdapter[SoundRayCluster]:
    return TypeAdapter(SoundRayCluster)


def sound(values: Any) -> RayClusterSettings:
    """The settings in a mapping, by the keys of a stack file. Raises pydantic.ValidationError."""
    return _adapter().validate_python(values, by_alias=True, by_name=False)


def problems_of(cluster: RayClusterSettings) -> Iterator[Problem]:
    """All that does not go together; paths in the cluster's settings."""
    yield from _images(cluster)
    yield from _authentication(cluster)
    yield from _said_twice(cluster)
    yield from _fault_tolerance(cluster)
    yield from _network_topology(cluster)
    yield from _updates(cluster)
    if not cluster.scales:
        yield from _without_autoscaler(cluster)
    bounds = (cluster.min_workers, cluster.initial_workers, cluster.max_workers)
    yield from replica_bounds((), bounds, ("minWorkers", "initialWorkers", "maxWorkers"))


def replica_bounds(
    path: Path,
    bounds: tuple[int | None, int | None, int | None],
    names: tuple[str, str, str] = ("minReplicas", "replicas", "maxReplicas"),
) -> Iterator[Problem]:
    """At least, at first and at most so many: in that order they may not fall. None: not said."""
    said = [(name, value) for name, value in zip(names, bounds, strict=True) if value is not None]
    for (name, value), (next_name, next_value) in pairwise(said):
        if value > next_value:
            message = f"{name} {value} is more than {next_name} {next_value}: lower {name} or raise {next_name}"
            yield Problem((*path, name), value, message, "replica-bounds")


def _images(cluster: RayClusterSettings) -> Iterator[Problem]:
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
    found = image_version(image)
    if found is None:
        return (
            f"the version of Ray in image {image!r} cannot be told by its tag: use a tag that starts with "
            f"{version}, or set verifyImageTag to false if it does have Ray {version}"
        )
    if found != version:
        return (
            f"rayVersion is {version!r} but image {image!r} has Ray {found}: "
            f"set rayVersion to {found}, or use the image of {version}"
        )
    return None


def _authentication(cluster: RayClusterSettings) -> Iterator[Problem]:
    options = cluster.auth_options
    if options and options.mode == "token" and not cluster.knows_tokens:
        message = (
            f"authOptions.mode 'token' needs Ray 2.52.0 or later, and rayVersion is {cluster.ray_version!r}: "
            "raise rayVersion, or set authOptions.mode to disabled"
        )
        yield Problem(("authOptions", "mode"), options.mode, message, "token-needs-ray")


def _said_twice(cluster: RayClusterSettings) -> Iterator[Problem]:
    said = cluster.model_fields_set
    if cluster.auto_scaling_mode == "disabled" and "autoscaling" in said and cluster.autoscaling:
        message = "autoScalingMode is disabled and autoscaling is true: remove one of them"
        yield Problem(("autoScalingMode",), "disabled", message, "said-twice")
    if cluster.target_utilization is not None and cluster.auto_scaling_mode is not None:
        message = "targetUtilization and autoScalingMode both say how fast workers are added: remove one of them"
        yield Problem(("targetUtilization",), cluster.target_utilization, message, "said-twice")
    if cluster.idle_timeout_minutes is not None and "idle_timeout" in said:
        message = f"idleTimeout {cluster.idle_timeout!r} says it already: remove one of them"
        yield Problem(("idleTimeoutMinutes",), cluster.idle_timeout_minutes, message, "said-twice")
    if cluster.pod_defaults == "none" and "run_as_user" in said:
        message = "podDefaults none adds no user to the pods: remove runAsUser, or podDefaults"
        yield Problem(("runAsUser",), cluster.run_as_user, message, "said-twice")


def _updates(cluster: RayClusterSettings) -> Iterator[Problem]:
    updates = cluster.updates
    if "limit" in updates.model_fields_set and updates.strategy != "drain":
        message = f"limit means nothing with strategy {updates.strategy}: remove it, or set strategy to drain"
        yield Problem(("updates", "limit"), updates.limit, message, "updates")
    if "strategy" in updates.model_fields_set and updates.strategy != "none" and recreates(cluster.overrides):
        message = (
            f"strategy {updates.strategy} means nothing where KubeRay deletes all pods at each edit: remove it, or "
            "upgradeStrategy from overrides"
        )
        yield Problem(("updates", "strategy"), updates.strategy, message, "updates")


FIRST_RAY_WITH_REDIS_USERS = "2.41.0"
"""Ray knows users of Redis since this version (ray-operator/controllers/ray/common/pod.go)."""


def _fault_tolerance(cluster: RayClusterSettings) -> Iterator[Problem]:
    if not cluster.fault_tolerance:
        return
    options = "gcsFaultToleranceOptions"
    if options in cluster.overrides:
        message = (
            "stands beside faultTolerance, which makes it, with the stack's redis: remove it, or faultTolerance for a "
            "Redis that the stack does not know"
        )
        yield Problem(("overrides", options), None, message, "said-twice")
    if version_tuple(cluster.ray_version) < version_tuple(FIRST_RAY_WITH_REDIS_USERS):
        message = (
            f"faultTolerance needs Ray {FIRST_RAY_WITH_REDIS_USERS} or later, which knows users of Redis, and "
            f"rayVersion is {cluster.ray_version!r}: raise rayVersion, or remove faultTolerance"
        )
        yield Problem(("faultTolerance",), True, message, "redis-users-need-ray")


def _network_topology(cluster: RayClusterSettings) -> Iterator[Problem]:
    topology = cluster.network_topology
    if topology and topology.mode == "soft" and topology.highest_tier_allowed is not None:
        message = "means nothing to mode soft, which spans as many tiers as it has to: remove it, or set mode to hard"
        path = ("networkTopology", "highestTierAllowed")
        yield Problem(path, topology.highest_tier_allowed, message, "topology-tier")


_AUTOSCALERS = {
    "auto_scaling_mode": "autoScalingMode",
    "target_utilization": "targetUtilization",
    "idle_timeout": "idleTimeout",
    "idle_timeout_minutes": "idleTimeoutMinutes",
}
"""Fields that the autoscaler alone heeds, and their keys."""


def _without_autoscaler(cluster: RayClusterSettings) -> Iterator[Problem]:
    message = "means nothing to a cluster that does not scale: remove it, or set autoscaling to true"
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
