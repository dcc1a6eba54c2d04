"""Checks existing installations of a program: version and API versions. Only reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.versions import UnsupportedVersionError, image_release, release_of

from .cluster import request


@dataclass(frozen=True)
class Found:
    """An existing installation of a program."""

    version: str | None
    """Version by the image's tag; None if it is not installed or the tag has no version."""

    served: tuple[str, ...] = ()
    """API versions that the CRD serves; empty without a CRD."""


@dataclass(frozen=True)
class Installed:
    """A program that may be installed already, and how to find its version."""

    title: str
    setting: str
    """Its setting in the stack file: `scheduler.volcano`."""

    deployment: str
    crd: str
    crd_version: str
    """API version of the CRD that is used here."""

    releases: Sequence[str]
    """Minor versions that are supported."""

    def look(self, context: str | None, namespace: str) -> Found:
        """Reads the installation in the cluster. Raises ClusterUnreachableError."""
        crd = request(context, "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{self.crd}")
        deployment = request(context, "GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{self.deployment}")
        return found(crd, deployment)

    def check(self, live: Found, namespace: str) -> str:
        """Its version. Raises UnsupportedVersionError unless it is supported and has its CRDs."""
        if live.version is None:
            problem = (
                f"there is no Deployment {self.deployment} with a version in namespace {namespace!r}: set "
                f"{self.setting}.namespace to where it is, or {self.setting}.install to manifests"
            )
        elif release_of(live.version) not in self.releases:
            problem = f"{self.title} {live.version} is not supported: install a supported one"
        elif self.crd_version not in live.served:
            problem = f"{self.crd} does not serve {self.crd_version}: apply the CRDs of {self.title} {live.version}"
        else:
            return live.version
        served = f"CRD {self.crd} serving {', '.join(live.served)}" if live.served else f"no CRD {self.crd}"
        supported = " or ".join(f"{release}.x" for release in self.releases)
        raise UnsupportedVersionError(
            f"{self.setting}.install is existing, and the cluster has: {self.deployment} {live.version or 'none'}, "
            f"{served}. Here {problem}. Supported: {supported}."
        )


def found(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Found:
    """The versions of a CRD and a Deployment."""
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment else ""
    versions = crd["spec"]["versions"] if crd else []
    return Found(image_release(image), tuple(version["name"] for version in versions if version["served"]))
