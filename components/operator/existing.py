"""Reads the live operator and its CRDs, and checks whether they are supported. Changes nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from core.versions import UnsupportedVersionError, image_tag, release_of
from kuberay.releases import OLDEST, SUPPORTED, check_ray, crd_release, is_supported, marks_hosts

from ..cluster import request
from .manifests import arguments, feature_gates
from .settings import NAME

RAY_CLUSTER_CRD = "rayclusters.ray.io"


@dataclass(frozen=True)
class Found:
    """A live operator. None: that part does not exist, or its version is not known."""

    operator: str | None
    """Version of the operator, by its image's tag or else its label `app.kubernetes.io/version`."""

    crd: str | None
    """Release whose RayCluster CRD is installed, as `1.6`."""

    served: tuple[str, ...] = ()
    """API versions of RayCluster that the CRD serves; empty without a CRD."""

    marks_hosts: bool = True
    """Whether the operator marks the pods of workers with several hosts."""

    def __str__(self) -> str:
        crd = f"CRD {RAY_CLUSTER_CRD} of release {self.crd or f'older than {OLDEST}'} serving {', '.join(self.served)}"
        return f"operator {self.operator or 'none'}, {crd if self.served else f'no CRD {RAY_CLUSTER_CRD}'}"


def look(context: str | None, namespace: str) -> Found:
    """Reads the live operator. Raises ClusterUnreachableError."""
    crd = request(context, "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{RAY_CLUSTER_CRD}")
    deployment = request(context, "GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}")
    return found(crd, deployment)


def found(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Found:
    """The versions of a RayCluster CRD and of the operator's Deployment."""
    operator = _version(deployment) if deployment else None
    marks = operator is None or deployment is None or marks_hosts(operator, _feature_gates(deployment))
    if crd is None:
        return Found(operator, None, marks_hosts=marks)
    served = tuple(version["name"] for version in crd["spec"]["versions"] if version["served"])
    return Found(operator, crd_release(crd), served, marks)


def check(live: Found, namespace: str, ray_versions: Sequence[str]) -> str:
    """The operator's version. Raises UnsupportedVersionError if operator, CRDs and the Ray versions are not compatible.

    CRDs must be of the operator's own release. An operator that was upgraded without them loses fields, and has deleted
    workers (KubeRay issue 2084).
    """
    if live.operator is None:
        problem = (
            f"there is no Deployment {NAME} with a version in namespace {namespace!r}: set operator.namespace to where "
            "it is, or operator.install to manifests"
        )
    elif not is_supported(live.operator):
        problem = f"operator {live.operator} is not supported: install a supported one"
    elif live.crd != (release := release_of(live.operator)):
        problem = f"the CRDs are not of the operator's release {release}: apply those of KubeRay v{live.operator}"
    elif "v1" not in live.served:
        problem = f"{RAY_CLUSTER_CRD} does not serve v1: apply the CRDs of KubeRay v{live.operator}"
    else:
        check_ray(live.operator, ray_versions)
        return live.operator
    raise UnsupportedVersionError(
        f"operator.install is existing, and the cluster has: {live}. Here {problem}. "
        f"Supported: operator {SUPPORTED} with the CRDs of the same release."
    )


def _container(deployment: dict[str, Any]) -> dict[str, Any]:
    containers: list[dict[str, Any]] = deployment["spec"]["template"]["spec"]["containers"]
    return next((container for container in containers if container["name"] == NAME), containers[0])


def _feature_gates(deployment: dict[str, Any]) -> dict[str, bool]:
    return feature_gates(arguments(_container(deployment).get("args") or []))


def _version(deployment: dict[str, Any]) -> str | None:
    named = _container(deployment)
    label = deployment["metadata"].get("labels", {}).get("app.kubernetes.io/version")
    for text in (image_tag(named["image"]), label):
        if match := re.match(r"v?(\d+\.\d+\.\d+)", text or ""):
            return match[1]
    return None
