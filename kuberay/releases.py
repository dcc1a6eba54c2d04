"""Releases of KubeRay: those that are supported, with the Ray of each; their feature gates, and their new fields."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from core.versions import UnsupportedVersionError, release_of, version_tuple


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
    compatibility"). Fields that need a newer Ray have separate rules (kuberay/features.py)."""

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

FIRST_RAY_WITH_TOKENS = "2.52.0"
FIRST_RAY_WITH_KUBERNETES_TOKENS = "2.55.0"
"""Ray authenticates by token, and by Kubernetes' tokens, since these versions; KubeRay refuses `authOptions` with them
for an older one (ray-operator/controllers/ray/utils/validation.go)."""

FIRST_RAY_WITH_GROUP_PRIORITY = "2.56.0"
"""Ray's autoscaler heeds priorities of worker groups since this version (validation.go at v1.7.0:
validateWorkerGroupPriority)."""

FIRST_RAY_WITH_DRAIN = "2.57.0"
"""Ray drains its node at SIGTERM since this version (ray-project/ray#64454)."""

FIRST_SERVE_WITH_DRAIN = "2.60.0"
"""Ray Serve moves its replicas from a draining node since this version (ray-project/ray#65502)."""

FIRST_RAY_WITH_REDIS_USERS = "2.41.0"
"""Ray knows users of Redis since this version (ray-operator/controllers/ray/common/pod.go)."""

NO_WAY_BACK = (
    "an older KubeRay drops the fields that it does not know, and leaves finalizers that nobody removes. Keep the "
    "newer version; to have the older one, delete all RayClusters, RayJobs and RayServices, `pulumi destroy` this "
    "stack, and install it again"
)
"""Why the operator cannot be downgraded, for messages. The CRDs of an older release drop fields, and 1.6 adds to
RayServices a finalizer that 1.5 does not know (rayservice_controller.go: RayServiceFinalizer)."""


def is_supported(version: str) -> bool:
    """Whether a version of the operator is supported."""
    row = RELEASES.get(release_of(version))
    return row is not None and version_tuple(version) >= version_tuple(row.first)


def known(version: str) -> str:
    """The release whose facts hold for a version: its own, or the newest known one for a later one of that major
    version."""
    release, newest = release_of(version), next(iter(RELEASES))
    same_major = version_tuple(release)[0] == version_tuple(newest)[0]
    return newest if same_major and newer(release, newest) else release


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


def too_old(operator: str, ray_versions: Iterable[str]) -> list[str]:
    """The versions of Ray that an operator of a supported or a later version does not support."""
    oldest = RELEASES[known(operator)].oldest_ray
    return [version for version in ray_versions if version_tuple(version) < version_tuple(oldest)]


def check_ray(operator: str, ray_versions: Iterable[str]) -> None:
    """Raises UnsupportedVersionError if the operator does not support one of the versions of Ray."""
    if old := too_old(operator, ray_versions):
        raise UnsupportedVersionError(
            f"KubeRay {operator} does not support Ray {', '.join(old)}: set rayVersion and image to "
            f"{RELEASES[known(operator)].oldest_ray} or later"
        )


_FEATURE_GATES_1_5: Mapping[str, bool] = {
    "RayClusterStatusConditions": True,
    "RayJobDeletionPolicy": False,
    "RayMultiHostIndexing": False,
    "RayServiceIncrementalUpgrade": False,
}

DEFAULT_FEATURE_GATES: Mapping[str, bool] = {
    **_FEATURE_GATES_1_5,
    "RayJobDeletionPolicy": True,
    "RayMultiHostIndexing": True,
    "RayCronJob": False,
    "AsyncJobInfoQuery": False,
}
"""KubeRay 1.6's feature gates."""

WORKLOADS_GATE = "KubernetesWAS"
"""The feature gate that selects Kubernetes' own gang scheduling. An operator does not start with it and a batch
scheduler (apis/config/v1alpha1/config_utils.go: ValidateBatchSchedulerConfig)."""

_FEATURE_GATES_1_7: Mapping[str, bool] = {
    **{gate: on for gate, on in DEFAULT_FEATURE_GATES.items() if gate != "AsyncJobInfoQuery"},
    "RayServiceIncrementalUpgrade": True,
    "SidecarSubmitterRestart": False,
    "RayClusterNetworkPolicy": False,
    "GCSFaultToleranceEmbeddedStorage": False,
    "RayClusterMTLS": False,
    "RayClusterHistoryServer": False,
    WORKLOADS_GATE: False,
}

FEATURE_GATES: Mapping[str, Mapping[str, bool]] = {
    "1.5": _FEATURE_GATES_1_5,
    "1.6": DEFAULT_FEATURE_GATES,
    "1.7": _FEATURE_GATES_1_7,
}
"""Feature gates by release of the operator, with their defaults (ray-operator/pkg/features/features.go at v1.5.1,
v1.6.2 and v1.7.0). An operator does not start with an unknown gate."""

RIGHTS_OF_GATES: Mapping[str, tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = {
    "RayCronJob": (("ray.io", ("raycronjobs", "raycronjobs/status", "raycronjobs/finalizers"), ()),),
    "RayServiceIncrementalUpgrade": (("gateway.networking.k8s.io", ("gateways", "httproutes"), ()),),
    "RayClusterNetworkPolicy": (("networking.k8s.io", ("networkpolicies",), ()),),
    "RayClusterMTLS": (
        ("cert-manager.io", ("certificates", "certificates/status", "issuers"), ()),
        ("", ("secrets",), ("update", "delete")),
    ),
    # Every operator of 1.7 watches claims (raycluster_controller.go: SetupWithManager).
    "GCSFaultToleranceEmbeddedStorage": (("", ("persistentvolumeclaims",), ("create", "update", "patch", "delete")),),
}
"""What the operator's ClusterRole has only for a feature gate: API group, resources and verbs, all verbs if there are
none (ray-operator/main.go, and the rbac markers and SetupWithManager of controllers/ray, at v1.6.2 and v1.7.0)."""

HOSTS_GATE = "RayMultiHostIndexing"
"""The feature gate for labels that identify the pods of a multi-host worker."""


@dataclass(frozen=True)
class OperatorContext:
    """The properties of an operator that decide which rules apply."""

    version: str = "1.6.2"
    """Release of KubeRay. All 1.6 releases validate alike. For 1.5 the rules of 1.6 apply, and those on fields that it
    lacks (SINCE); for 1.7 also its own (options.py)."""

    batch_scheduler: str | None = None
    """Gang scheduler for which the operator creates pod groups (`--batch-scheduler`)."""

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """Feature gates that are set, by name."""

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        defaults = FEATURE_GATES.get(release_of(self.version), DEFAULT_FEATURE_GATES)
        return self.feature_gates.get(gate, defaults.get(gate, False))

    def since(self, release: str) -> bool:
        """Whether the operator has that minor version or a later one."""
        return not newer(release, than=release_of(self.version))


def marks_hosts(version: str, feature_gates: Mapping[str, bool]) -> bool:
    """Whether an operator labels the pods of multi-host workers, and identifies such workers only by these labels
    (ray-operator/controllers/ray/raycluster_controller.go: reconcileMultiHostWorkerGroup)."""
    operator = OperatorContext(version, feature_gates=feature_gates)
    return operator.since("1.5") and operator.enabled(HOSTS_GATE)


def groups_with_hosts(body: Mapping[str, Any]) -> list[str]:
    """The multi-host worker groups of a RayCluster."""
    groups = body["spec"].get("workerGroupSpecs") or ()
    return [group["groupName"] for group in groups if (group.get("numOfHosts") or 1) > 1]


Steps: TypeAlias = tuple[str, ...]

EACH = "*"
"""Stands for any index."""

_OF_PODS: tuple[Steps, ...] = (
    ("spec", "workloadRef"),
    ("spec", "volumes", EACH, "projected", "sources", EACH, "podCertificate", "userAnnotations"),
)

_NEW_IN_CLUSTERS: tuple[Steps, ...] = (
    ("autoscalerOptions", "args"),
    ("autoscalerOptions", "command"),
    ("gcsFaultToleranceOptions", "backend"),
    ("gcsFaultToleranceOptions", "storage"),
    ("headGroupSpec", "ingressOptions"),
    ("headGroupSpec", "template", "spec", "schedulingGroup"),
    ("historyServerOptions",),
    ("networkPolicy",),
    ("tlsOptions",),
    ("workerGroupSpecs", EACH, "priority"),
    ("workerGroupSpecs", EACH, "template", "spec", "schedulingGroup"),
)
"""Of 1.7."""

_OF_CLUSTERS: tuple[Steps, ...] = (
    ("upgradeStrategy",),
    ("authOptions", "enableK8sTokenAuth"),
    ("authOptions", "secretName"),
    *(("headGroupSpec", "template", *steps) for steps in _OF_PODS),
    *(("workerGroupSpecs", EACH, "template", *steps) for steps in _OF_PODS),
)

SINCE: Mapping[str, Mapping[str, tuple[Steps, ...]]] = {
    "1.6": {
        "RayCluster": tuple(("spec", *steps) for steps in _OF_CLUSTERS),
        "RayJob": (
            *(("spec", "rayClusterSpec", *steps) for steps in _OF_CLUSTERS),
            ("spec", "preRunningDeadlineSeconds"),
            ("spec", "deletionStrategy", "deletionRules", EACH, "condition", "jobDeploymentStatus"),
            *(("spec", "submitterPodTemplate", *steps) for steps in _OF_PODS),
        ),
        "RayService": (
            *(("spec", "rayClusterConfig", *steps) for steps in _OF_CLUSTERS),
            ("spec", "managedBy"),
        ),
        "RayCronJob": ((),),
    },
    "1.7": {
        "RayCluster": tuple(("spec", *steps) for steps in _NEW_IN_CLUSTERS),
        "RayJob": (
            *(("spec", "rayClusterSpec", *steps) for steps in _NEW_IN_CLUSTERS),
            ("spec", "submitterPodTemplate", "spec", "schedulingGroup"),
        ),
        "RayService": (*(("spec", "rayClusterConfig", *steps) for steps in _NEW_IN_CLUSTERS), ("spec", "suspend")),
        "RayCronJob": (
            *(("spec", "jobTemplate", "rayClusterSpec", *steps) for steps in _NEW_IN_CLUSTERS),
            ("spec", "jobTemplate", "submitterPodTemplate", "spec", "schedulingGroup"),
            ("spec", "timeZone"),
        ),
    },
}
"""New fields by release and kind (ray-operator/config/crd/bases at its tag and at the one before). An empty path is the
kind itself. With the CRDs of an older release the API server drops such fields silently.
tests/differential/test_releases.py compares the fields of 1.6 with the CRDs of 1.5 and 1.6."""

GONE: Mapping[str, str] = {"workloadRef": "1.7"}
"""New fields of one release that a later one no longer has, with that release."""


def newer_field(name: str, release: str, operator: OperatorContext) -> str:
    """The message for a field that came with a later release than the operator's."""
    return (
        f"{name} came with KubeRay {release}, and operator.version is {operator.version}: remove it, or upgrade the "
        f"operator to {release}"
    )
