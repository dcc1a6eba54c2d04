"""Which releases of the operator, its CRDs and Ray go together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core.types import version_tuple
from core.versions import UnsupportedVersionError, release_of

from .context import OperatorContext


@dataclass(frozen=True)
class Release:
    """What belongs to the operator's releases of one minor version."""

    first: str
    """Oldest version that is supported."""

    crd_marker: str
    """The field of a RayCluster's spec that came with the release. KubeRay's CRDs bear no version and all serve `v1`,
    so their fields tell (ray-operator/config/crd/bases/ray.io_rayclusters.yaml at each release's tag)."""

    oldest_ray: str
    """Oldest Ray that it supports: 2.38.0 since KubeRay 1.3 (docs.ray.io, KubeRay upgrade guide, "KubeRay / Ray
    compatibility"). What a field needs of Ray is a rule of its own (kuberay/authentication.py)."""

    new_pods: str = ""
    """What pods have that it makes, and those of the release before have not (ray-operator/controllers/ray/common/
    pod.go: initLivenessAndReadinessProbe, setContainerEnvVars)."""


RELEASES = {
    "1.7": Release("1.7.0", crd_marker="tlsOptions", oldest_ray="2.38.0"),
    "1.6": Release(
        "1.6.0",
        crd_marker="upgradeStrategy",
        oldest_ray="2.38.0",
        new_pods="health probes by HTTP where Ray is 2.53 or later, and RAY_CLUSTER_NAMESPACE in their environment",
    ),
    # 1.5.0 knows no authentication (its CRD has no authOptions), which RayClusters have here unless told otherwise.
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
"""Of operators, as a message says it. The CRDs of an older release drop fields, and 1.6 gives RayServices a finalizer
that 1.5 does not know (rayservice_controller.go: RayServiceFinalizer)."""

HOSTS_GATE = "RayMultiHostIndexing"
"""The feature gate with which workers with several hosts are known by marks of their pods."""


def is_supported(version: str) -> bool:
    """Whether a version of the operator is."""
    row = RELEASES.get(release_of(version))
    return row is not None and version_tuple(version) >= version_tuple(row.first)


def newer(release: str, than: str) -> bool:
    """Whether a minor version is newer than another."""
    return version_tuple(release) > version_tuple(than)


def crd_release(crd: dict[str, Any]) -> str | None:
    """The release that a RayCluster CRD is of, None for one older than all supported."""
    schema: dict[str, Any] = next(
        (each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"] if each["name"] == "v1"), {}
    )
    fields = schema.get("properties", {}).get("spec", {}).get("properties", {})
    return next((release for release, row in RELEASES.items() if row.crd_marker in fields), None)


def marks_hosts(version: str, feature_gates: Mapping[str, bool]) -> bool:
    """Whether an operator marks the pods of workers with several hosts, and knows such workers by their marks alone
    (ray-operator/controllers/ray/raycluster_controller.go: reconcileMultiHostWorkerGroup)."""
    operator = OperatorContext(version, feature_gates=feature_gates)
    return operator.since("1.5") and operator.enabled(HOSTS_GATE)


def groups_with_hosts(body: Mapping[str, Any]) -> list[str]:
    """The worker groups of a RayCluster whose workers have several hosts."""
    groups = body["spec"].get("workerGroupSpecs") or ()
    return [group["groupName"] for group in groups if (group.get("numOfHosts") or 1) > 1]


def too_old(operator: str, ray_versions: Iterable[str]) -> list[str]:
    """The versions of Ray that an operator of a supported version does not support."""
    oldest = RELEASES[release_of(operator)].oldest_ray
    return [version for version in ray_versions if version_tuple(version) < version_tuple(oldest)]


def check_ray(operator: str, ray_versions: Iterable[str]) -> None:
    """Raises UnsupportedVersionError where the operator does not support one of the versions of Ray."""
    if old := too_old(operator, ray_versions):
        raise UnsupportedVersionError(
            f"KubeRay {operator} does not support Ray {', '.join(old)}: set rayVersion and image to "
            f"{RELEASES[release_of(operator)].oldest_ray} or later"
        )
