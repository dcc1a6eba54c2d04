"""Which releases of the operator, its CRDs and Ray go together."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..types import version_tuple


class UnsupportedVersionError(Exception):
    """Versions that do not go together; the text says which, and what is supported."""


@dataclass(frozen=True)
class Release:
    """What belongs to the operator's releases of one minor version."""

    crd_marker: str
    """The field of a RayCluster's spec that came with the release. KubeRay's CRDs bear no version and all serve `v1`,
    so their fields tell (ray-operator/config/crd/bases/ray.io_rayclusters.yaml at each release's tag)."""

    oldest_ray: str
    """Oldest Ray that it supports: 2.38.0 since KubeRay 1.3 (docs.ray.io, KubeRay upgrade guide, "KubeRay / Ray
    compatibility")."""


RELEASES = {
    "1.7": Release(crd_marker="tlsOptions", oldest_ray="2.38.0"),
    "1.6": Release(crd_marker="upgradeStrategy", oldest_ray="2.38.0"),
}
"""Supported minor versions of the operator, newest first."""

SUPPORTED = " or ".join(f"{release}.x" for release in reversed(RELEASES))


def release_of(version: str) -> str:
    """The minor version: `1.6` of `1.6.2`."""
    return version.rpartition(".")[0]


def crd_release(crd: dict[str, Any]) -> str | None:
    """The release that a RayCluster CRD is of, None for one older than all supported."""
    schema: dict[str, Any] = next(
        (each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"] if each["name"] == "v1"), {}
    )
    fields = schema.get("properties", {}).get("spec", {}).get("properties", {})
    return next((release for release, row in RELEASES.items() if row.crd_marker in fields), None)


def too_old(operator: str, ray_versions: Iterable[str]) -> list[str]:
    """The versions of Ray that an operator of a supported version does not support."""
    oldest = RELEASES[release_of(operator)].oldest_ray
    return [version for version in ray_versions if version_tuple(version) < version_tuple(oldest)]


def check_ray(operator: str, ray_versions: Iterable[str]) -> None:
    """Raises UnsupportedVersionError where the operator does not support one of the versions of Ray."""
    if old := too_old(operator, ray_versions):
        oldest = RELEASES[release_of(operator)].oldest_ray
        raise UnsupportedVersionError(
            f"KubeRay {operator} does not support Ray {', '.join(old)}: set rayVersion and image to {oldest} or later"
        )
