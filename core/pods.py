"""Pods: the paths of pod templates and of RayCluster specs by kind, and Pod Security levels of namespaces."""

from collections.abc import Iterator
from typing import Any, Literal

from core.body import ReadOnlyBody
from core.problems import Path, Problem

RAY = "ray.io"
"""API group of KubeRay's kinds."""

POD_TEMPLATES: dict[tuple[str, str], Path] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""Path of the pod template by API group and kind. For a Pod it is the object itself."""

RAY_CLUSTERS: dict[str, Path] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}
"""Path of the RayCluster spec by kind of KubeRay (ray-operator/apis/ray/v1/*_types.go)."""

RAY_JOBS: dict[str, Path] = {"RayJob": ("spec",), "RayCronJob": ("spec", "jobTemplate")}
"""Path of the RayJob spec by kind of KubeRay."""

SUBMITTERS: dict[str, Path] = {kind: (*path, "submitterPodTemplate") for kind, path in RAY_JOBS.items()}
"""Path of the pod template of the submitter by kind of KubeRay."""

VOLCANO_JOB = ("batch.volcano.sh", "Job")
"""API group and kind of Volcano's Job, each of whose tasks has a pod template."""


PodSecurityLevel = Literal["restricted", "baseline", "privileged"]
"""Levels of Kubernetes' Pod Security Standards (kubernetes.io, Pod Security Standards), the strictest first."""

POD_SECURITY_PREFIX = "pod-security.kubernetes.io"
"""Prefix of the labels of Kubernetes' Pod Security admission."""

_MODES = ("enforce", "audit", "warn")


def level_labels(level: PodSecurityLevel) -> dict[str, str]:
    """Labels of a namespace whose pods must meet the level: the API server refuses others.

    The level is that of the cluster's Kubernetes version (`latest`): a pinned version would miss later restrictions.
    """
    return {
        f"{POD_SECURITY_PREFIX}/{mode}{part}": value
        for mode in _MODES
        for part, value in (("", level), ("-version", "latest"))
    }


RESTRICTED_CONTAINER: dict[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""The security context of a container that meets `restricted` in such a pod (kubernetes.io, Pod Security Standards)."""

RESTRICTED_POD: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""The security context of a pod that meets `restricted`."""

RESTRICTED_CAPABILITIES = ("NET_BIND_SERVICE",)
"""Capabilities that `restricted` lets a container add."""

PROFILES = ("RuntimeDefault", "Localhost")
"""Types of seccomp and AppArmor profiles that `baseline` and `restricted` allow."""


LONGEST_STOP = 86400
"""Seconds that a pod may take to stop: a day."""


def kept(template: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Fields of a pod template with which its pods do not go. `path`: that of the template, which may have values of
    wrong types."""
    metadata, spec = (part if isinstance(part := template.get(key), dict) else {} for key in ("metadata", "spec"))
    if metadata.get("finalizers"):
        message = "nothing removes them from the pods, so pods and namespace could never be deleted: remove them"
        yield Problem((*path, "metadata", "finalizers"), None, message, "pod-stays")
    seconds = spec.get("terminationGracePeriodSeconds")
    if isinstance(seconds, int) and seconds > LONGEST_STOP:
        message = f"a node could not be drained for that long: use at most {LONGEST_STOP}, a day"
        yield Problem((*path, "spec", "terminationGracePeriodSeconds"), seconds, message, "pod-stays")
