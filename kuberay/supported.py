"""Compatible releases of the operator, its CRDs and Ray."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.types import version_tuple
from core.versions import UnsupportedVersionError, release_of

from .context import OperatorContext


@dataclass(frozen=True)
class Release:
    """Properties of the operator's releases of one minor version."""

    first: str
    """Oldest supported version."""

    crd_marker: str
    """A field of the RayCluster spec that is new in the release. KubeRay's CRDs have no version and all serve `v1`, so
    their fields identify the release (ray-operator/config/crd/bases/ray.io_rayclusters.yaml at each release's tag)."""

    oldest_ray: str
    """Oldest Ray that it supports: 2.38.0 since KubeRay 1.3 (docs.ray.io, KubeRay upgrade guide, "KubeRay / Ray
    compatibility"). Fields that need a newer Ray have separate rules (kuberay/authentication.py)."""

    new_pods: str = ""
    """What its pods have and those of the previous release lack (ray-operator/controllers/ray/common/pod.go:
    initLivenessAndReadinessProbe, setContainerEnvVars)."""


RELEASES = {
    "1.7": Release("1.7.0", crd_marker="tlsOptions", oldest_ray="2.38.0"),
    "1.6": Release(
        "1.6.0",
        crd_marker="upgradeStrategy",
        oldest_ray="2.38.0",
        new_pods="health probes by HTTP where Ray is 2.53 or later, and RAY_CLUSTER_NAMESPACE in their environment",
    ),
    # 1.5.0 does not support authentication (no authOptions in its CRD), which RayClusters here have by default.
    "1.5": Release("1.5.1", crd_marker="authOptions", oldest_ray="2.38.0"),
}
"""Supported minor versions of the operator, newest first."""

OLDEST = RELEASES[next(reversed(RELEASES))].first

SUPPORTED = f"{OLDEST} to {next(iter(RELEASES))}.x"


NO_WAY_BACK = (
    "an older KubeRay drops the fields that it does not know, and leaves finalizers that nobody removes. Keep the "
    "newer version; to have the older one, delete all RayClusters, RayJobs and RayServices, `pulumi destroy` this "
    "stack, and install it anew"
)
"""Why the operator cannot be downgraded, for messages. The CRDs of an older release drop fields, and 1.6 adds to
RayServices a finalizer that 1.5 does not know (rayservice_controller.go: RayServiceFinalizer)."""

HOSTS_GATE = "RayMultiHostIndexing"
"""The feature gate for labels that identify the pods of a multi-host worker."""


def is_supported(version: str) -> bool:
    """Whether a version of the operator is supported."""
    row = RELEASES.get(release_of(version))
    return row is not None and version_tuple(version) >= version_tuple(row.first)


def newer(release: str, than: str) -> bool:
    """Whether a minor version is newer than another."""
    return version_tuple(release) > version_tuple(than)


def crd_release(crd: dict[str, Any]) -> str | None:
    """The release of a RayCluster CRD; None if it is older than all supported ones."""
    schema: dict[str, Any] = next(
        (each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"] if each["name"] == "v1"), {}
    )
    fields = schema.get("properties", {}).get("spec", {}).get("properties", {})
    return next((release for release, row in RELEASES.items() if row.crd_marker in fields), None)


def marks_hosts(version: str, feature_gates: Mapping[str, bool]) -> bool:
    """Whether an operator labels the pods of multi-host workers, and identifies such workers only by these labels
    (ray-operator/controllers/ray/raycluster_controller.go: reconcileMultiHostWorkerGroup)."""
    operator = OperatorContext(version, feature_gates=feature_gates)
    return operator.since("1.5") and operator.enabled(HOSTS_GATE)


def groups_with_hosts(body: Mapping[str, Any]) -> list[str]:
    """The multi-host worker groups of a RayCluster."""
    groups = body["spec"].get("workerGroupSpecs") or ()
    return [group["groupName"] for group in groups if (group.get("numOfHosts") or 1) > 1]


def too_old(operator: str, ray_versions: Iterable[str]) -> list[str]:
    """The versions of Ray that an operator of a supported version does not support."""
    oldest = RELEASES[release_of(operator)].oldest_ray
    return [version for version in ray_versions if version_tuple(version) < version_tuple(oldest)]


def check_ray(operator: str, ray_versions: Iterable[str]) -> None:
    """Raises UnsupportedVersionError if the operator does not support one of the versions of Ray."""
    if old := too_old(operator, ray_versions):
        raise UnsupportedVersionError(
            f"KubeRay {operator} does not support Ray {', '.join(old)}: set rayVersion and image to "
            f"{RELEASES[release_of(operator)].oldest_ray} or later"
        )
