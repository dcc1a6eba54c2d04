"""Reads the live operator and its CRDs, and checks whether they are supported, and may be changed to the desired one.

Changes nothing. See docs/upgrades.md and docs/decisions/0020-operator-upgrades.md.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from components.cluster import Cluster
from components.in_use import kuberay_objects
from components.operator.manifests import arguments, feature_gates
from components.operator.settings import NAME, OperatorSettings
from components.ray_cluster.pods import CLUSTER_LABEL, GROUP_LABEL
from core.versions import UnsupportedVersionError, image_tag, release_of
from kuberay.releases import (
    HOSTS_GATE,
    NO_WAY_BACK,
    OLDEST,
    RELEASES,
    SUPPORTED,
    check_ray,
    crd_release,
    groups_with_hosts,
    is_supported,
    known,
    marks_hosts,
    newer,
)

RAY_CLUSTER_CRD = "rayclusters.ray.io"


@dataclass(frozen=True)
class Live:
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


@dataclass(frozen=True)
class Judged:
    """The operator that RayClusters will have."""

    version: str

    warning: str | None
    """What may go wrong."""


def judged(cluster: Cluster, settings: OperatorSettings, ray_versions: Sequence[str]) -> Judged:
    """Compares the desired or the existing operator with what is live, and with the versions of Ray.

    Raises UnsupportedVersionError, UnsafeUpgradeError, and ClusterUnreachableError.
    """
    if settings.install == "existing":
        live = look(cluster, settings.namespace)
        return Judged(*check_existing(live, settings.namespace, ray_versions))
    check_ray(settings.version, ray_versions)
    return Judged(settings.version, check_change(cluster, settings))


def look(cluster: Cluster, namespace: str) -> Live:
    """Reads the live operator. Raises ClusterUnreachableError."""
    crd = cluster.get("apiextensions.k8s.io/v1", "customresourcedefinitions", None, RAY_CLUSTER_CRD)
    deployment = cluster.get("apps/v1", "deployments", namespace, NAME)
    return live_operator(crd, deployment)


def live_operator(crd: dict[str, Any] | None, deployment: dict[str, Any] | None) -> Live:
    """The versions of a RayCluster CRD and of the operator's Deployment."""
    operator = _version(deployment) if deployment else None
    args = _container(deployment).get("args") if deployment else None
    marks = operator is None or marks_hosts(operator, feature_gates(arguments(args or [])))
    if crd is None:
        return Live(operator, None, marks_hosts=marks)
    served = tuple(version["name"] for version in crd["spec"]["versions"] if version["served"])
    return Live(operator, crd_release(crd), served, marks)


def check_existing(live: Live, namespace: str, ray_versions: Sequence[str]) -> tuple[str, str | None]:
    """The operator's version, and a warning if it is later than all known ones.

    Raises UnsupportedVersionError if operator, CRDs and the Ray versions are not compatible.

    CRDs must be of the operator's own release. An operator that was upgraded without them loses fields, and has deleted
    workers (KubeRay issue 2084).
    """
    if live.operator is None:
        problem = (
            f"there is no Deployment {NAME} with a version in namespace {namespace!r}: set operator.namespace to where "
            "it is, or operator.install to manifests"
        )
    elif not is_supported(live.operator) and known(live.operator) == release_of(live.operator):
        problem = f"operator {live.operator} is not supported: install a supported one"
    elif live.crd != known(live.operator):
        release = release_of(live.operator)
        problem = f"the CRDs are not of the operator's release {release}: apply those of KubeRay v{live.operator}"
    elif "v1" not in live.served:
        problem = f"{RAY_CLUSTER_CRD} does not serve v1: apply the CRDs of KubeRay v{live.operator}"
    else:
        check_ray(live.operator, ray_versions)
        return live.operator, _later(live.operator)
    raise UnsupportedVersionError(
        f"operator.install is existing, and the cluster has: {live}. Here {problem}. "
        f"Supported: operator {SUPPORTED} with the CRDs of the same release."
    )


def _later(version: str) -> str | None:
    release = known(version)
    if release == release_of(version):
        return None
    return (
        f"operator {version} is later than KubeRay {release}, the last release known here: its new fields and feature "
        f"gates are unknown to `check`, and RayClusters are judged by the rules of {release}"
    )


def _container(deployment: dict[str, Any]) -> dict[str, Any]:
    containers: list[dict[str, Any]] = deployment["spec"]["template"]["spec"]["containers"]
    return next((container for container in containers if container["name"] == NAME), containers[0])


def _version(deployment: dict[str, Any]) -> str | None:
    named = _container(deployment)
    label = deployment["metadata"].get("labels", {}).get("app.kubernetes.io/version")
    for text in (image_tag(named["image"]), label):
        if match := re.match(r"v?(\d+\.\d+\.\d+)", text or ""):
            return match[1]
    return None


REPLICA_MARK = "ray.io/worker-group-replica-name"
"""Label of the pods of workers with several hosts (ray-operator/controllers/ray/utils/constant.go)."""

_NAMED = 10
"""The most worker groups that a message names."""


class UnsafeUpgradeError(Exception):
    """The change of the operator would harm running clusters; the message has the reason and what to do instead."""


def check_change(cluster: Cluster, settings: OperatorSettings) -> str | None:
    """Compares the desired operator with the live one. Returns a warning, or None.

    Raises UnsafeUpgradeError if it is older than the live operator, or would not recognize running pods, and
    ClusterUnreachableError if that cannot be read.
    """
    live = look(cluster, settings.namespace)
    check_release(live, settings)
    if not live.marks_hosts and marks_hosts(settings.version, settings.feature_gates):
        check_hosts(live, settings, without_marks(cluster))
    return outdated_crds(live)


def check_release(live: Live, settings: OperatorSettings) -> None:
    """Raises UnsafeUpgradeError if the live operator or its CRDs are of a later release than the desired one."""
    desired = release_of(settings.version)
    of_operator = release_of(live.operator) if live.operator else None
    if not any(release is not None and newer(release, desired) for release in (live.crd, of_operator)):
        return
    raise UnsafeUpgradeError(
        f"operator.version is {settings.version}, and the cluster has: {live}. This would be a downgrade, and "
        f"{NO_WAY_BACK}."
    )


def outdated_crds(live: Live) -> str | None:
    """A warning if the live operator has CRDs of an earlier release. Such an operator loses fields, and has deleted
    workers (KubeRay issue 2084). The stack upgrades CRDs first, so somebody else has upgraded the operator."""
    if live.operator is None or not live.served:
        return None
    release = release_of(live.operator)
    if release not in RELEASES or (live.crd and not newer(release, live.crd)):
        return None
    return (
        f"the cluster has: {live}. An operator with older CRDs loses fields of RayClusters: run `pulumi refresh`, and "
        "then `pulumi up`, which corrects them"
    )


def check_hosts(live: Live, settings: OperatorSettings, groups: Iterable[str]) -> None:
    """Raises UnsafeUpgradeError if there are worker groups whose pods the desired operator would not recognize.

    It counts workers with several hosts by labels that the live operator does not set. It would create all of them a
    second time and never delete the first ones (raycluster_controller.go: reconcileMultiHostWorkerGroup).
    """
    if named := sorted(groups):
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        raise UnsafeUpgradeError(
            f"KubeRay {settings.version} would create all workers with several hosts a second time, and nobody would "
            f"delete those that KubeRay {live.operator} has created: {', '.join(named[:_NAMED])}{more}. Set "
            f"operator.featureGates to {{{HOSTS_GATE}: false}} in the same edit, or remove these worker groups first"
        )


def without_marks(cluster: Cluster) -> Iterator[str]:
    """The worker groups with several hosts that have pods without the label. Raises ClusterUnreachableError."""
    for body in kuberay_objects(cluster, ["rayclusters"]):
        if not (groups := groups_with_hosts(body)):
            continue
        metadata = body["metadata"]
        chosen = f"{CLUSTER_LABEL}={metadata['name']},{GROUP_LABEL} in ({','.join(groups)}),!{REPLICA_MARK}"
        pods = cluster.list("v1", "pods", metadata["namespace"], labels=chosen) or ()
        found = {pod["metadata"]["labels"][GROUP_LABEL] for pod in pods}
        yield from (f"{metadata['namespace']}/{metadata['name']} {group}" for group in sorted(found))
