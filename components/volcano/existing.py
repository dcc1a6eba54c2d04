"""Checks a Volcano that was installed by others: what is there, and whether it is supported. Changes nothing."""

from dataclasses import dataclass
from typing import Any

import kubernetes

from ..cluster import connect, read
from .manifests import SCHEDULER
from .supported import RELEASES, SUPPORTED, UnsupportedVersionError, image_release, release_of

QUEUE_CRD = "queues.scheduling.volcano.sh"

QUEUE_VERSION = "v1beta1"


@dataclass(frozen=True)
class Found:
    """What is there of Volcano."""

    version: str | None
    """Of the scheduler, by its image's tag; None where it is not there or its tag says none."""

    served: tuple[str, ...] = ()
    """API versions of Queue that the CRD serves; none where there is no CRD."""

    def __str__(self) -> str:
        crd = f"CRD {QUEUE_CRD} serving {', '.join(self.served)}" if self.served else f"no CRD {QUEUE_CRD}"
        return f"scheduler {self.version or 'none'}, {crd}"


def look(context: str | None, namespace: str) -> Found:
    """What is in the cluster. Raises ClusterUnreachableError."""
    client = connect(context)
    crd = read(kubernetes.client.ApiextensionsV1Api(client).read_custom_resource_definition, QUEUE_CRD)
    deployment = read(kubernetes.client.AppsV1Api(client).read_namespaced_deployment, SCHEDULER, namespace)
    return found(crd, deployment)


def found(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Found:
    """What the CRD of queues and the scheduler's Deployment say of their versions."""
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment else ""
    versions = crd["spec"]["versions"] if crd else []
    return Found(image_release(image), tuple(version["name"] for version in versions if version["served"]))


def check(there: Found, namespace: str) -> str:
    """Volcano's version. Raises UnsupportedVersionError unless it is supported and has its CRDs."""
    if there.version is None:
        problem = (
            f"there is no Deployment {SCHEDULER} with a version in namespace {namespace!r}: set "
            "scheduler.volcano.namespace to where it is, or scheduler.volcano.install to manifests"
        )
    elif release_of(there.version) not in RELEASES:
        problem = f"Volcano {there.version} is not supported: install a supported one"
    elif QUEUE_VERSION not in there.served:
        problem = f"{QUEUE_CRD} does not serve {QUEUE_VERSION}: apply the CRDs of Volcano {there.version}"
    else:
        return there.version
    raise UnsupportedVersionError(
        f"scheduler.volcano.install is existing, and the cluster has: {there}. Here {problem}. Supported: {SUPPORTED}."
    )
