"""Checks what was installed by others: what is there of it, and whether it is supported. Changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.types import image_release
from core.versions import UnsupportedVersionError, release_of

from .cluster import request


@dataclass(frozen=True)
class Found:
    """What is there of a program."""

    version: str | None
    """By its image's tag; None where it is not there or its tag says none."""

    served: tuple[str, ...] = ()
    """API versions that the CRD serves; none where there is no CRD."""


@dataclass(frozen=True)
class Installed:
    """A program that others may have installed, and how to tell which it is."""

    title: str
    setting: str
    """Where a stack file says where it is: `scheduler.volcano`."""

    deployment: str
    crd: str
    crd_version: str
    """Version of the CRD's API that is used here."""

    releases: Sequence[str]
    """Minor versions that are supported."""

    def look(self, context: str | None, namespace: str) -> Found:
        """What is in the cluster. Raises ClusterUnreachableError."""
        crd = request(context, "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.crd}")
        deployment = request(context, "GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{self.deployment}")
        return found(crd, deployment)

    def check(self, there: Found, namespace: str) -> str:
        """Its version. Raises UnsupportedVersionError unless it is supported and has its CRDs."""
        if there.version is None:
            problem = (
                f"there is no Deployment {self.deployment} with a version in namespace {namespace!r}: set "
                f"{self.setting}.namespace to where it is, or {self.setting}.install to manifests"
            )
        elif release_of(there.version) not in self.releases:
            problem = f"{self.title} {there.version} is not supported: install a supported one"
        elif self.crd_version not in there.served:
            problem = f"{self.crd} does not serve {self.crd_version}: apply the CRDs of {self.title} {there.version}"
        else:
            return there.version
        served = f"CRD {self.crd} serving {', '.join(there.served)}" if there.served else f"no CRD {self.crd}"
        supported = " or ".join(f"{release}.x" for release in self.releases)
        raise UnsupportedVersionError(
            f"{self.setting}.install is existing, and the cluster has: {self.deployment} {there.version or 'none'}, "
            f"{served}. Here {problem}. Supported: {supported}."
        )


def found(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Found:
    """What a CRD and a Deployment say of their versions."""
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment else ""
    versions = crd["spec"]["versions"] if crd else []
    return Found(image_release(image), tuple(version["name"] for version in versions if version["served"]))
