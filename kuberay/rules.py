"""The rules by name, and their common types."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from core.body import Body, ReadOnlyBody
from core.problems import Path, Problem
from kuberay.releases import OperatorContext

Found: TypeAlias = Iterator[Problem]
"""The problems that a rule finds."""

POD_RULES: Mapping[str, str] = {
    "pod-field-missing": "ValidatePodCreate",
    "pod-value": "ValidatePodCreate",
    "pod-reference": "ValidatePodCreate",
    "pod-duplicate": "ValidatePodCreate",
    "pod-conflict": "ValidatePodCreate",
    "pod-security": "pod-security-admission: EvaluatePod",
    "ray-start-option": "ray/scripts/scripts.py: start",
    "ray-start-value": "ray/scripts/scripts.py: start",
    "ray-start-memory": "ray/_private/services.py: determine_plasma_store_config",
    "ray-start-gpus": "ray/scripts/scripts.py: start",
    "whole-devices": "ValidatePodCreate",
    "request-within-limit": "ValidatePodCreate",
}
"""Rules on pods, and on Ray in them (pod_template/, pod_security.py, ray_start.py), with what they follow."""

RULES: Mapping[str, str] = {
    # The API server, by the CRDs' schema (schema.py) and apimachinery's ValidateObjectMeta (formats.py).
    "unknown-kind": "apiserver",
    "unknown-field": "apiserver",
    "required-field": "apiserver",
    "wrong-type": "apiserver",
    "not-allowed-value": "apiserver",
    "wrong-format": "apiserver",
    "out-of-range": "apiserver",
    "duplicate-item": "apiserver",
    "deletion-strategy-style": "apiserver",
    "deletion-condition": "apiserver",
    "object-name": "apiserver",
    "object-label": "apiserver",
    "object-annotation": "apiserver",
    **POD_RULES,
    # The operator (controllers/ray/utils/validation.go, unless another file is named).
    "ray-cluster-name": "ValidateRayClusterMetadata",
    "ray-job-name": "ValidateRayJobMetadata",
    "ray-service-name": "ValidateRayServiceMetadata",
    "ray-cron-job-name": "ValidateRayJobMetadata, of the RayJobs that it makes",
    "initializing-timeout": "validateInitializingTimeout",
    "cluster-upgrade-strategy": "ValidateRayClusterUpgradeOptions",
    "group-containers": "ValidateRayClusterSpec",
    "group-resources": "validateRayGroupResources",
    "group-start-labels": "validateRayGroupLabels",
    "group-label": "validateRayGroupLabels",
    "group-name-unique": "pkg/webhooks/v1/raycluster_webhook.go: validateWorkerGroups",
    "negative-replicas": "ValidateRayClusterSpec",
    "replica-bounds": "ValidateRayClusterSpec",
    "group-suspend": "ValidateRayClusterSpec",
    "group-idle-timeout": "validateWorkerGroupIdleTimeout",
    "autoscaler-idle-timeout": "ValidateRayClusterSpec",
    "autoscaler-version-env": "ValidateRayClusterSpec",
    "autoscaler-restart-policy": "ValidateRayClusterSpec",
    "autoscaler-start-command": "ValidateRayClusterSpec, of 1.7",
    "group-priority": "validateWorkerGroupPriority, of 1.7",
    "gcs-storage": "validateGcsFaultToleranceBackend, of 1.7",
    "history-server": "ValidateRayClusterSpec, validateCollectorOptions, of 1.7",
    "network-policy": "validateNetworkPolicy, of 1.7",
    "tls-options": "validateTLSOptions, of 1.7",
    "option-feature-gate": "ValidateRayClusterSpec, of 1.7",
    "redis-annotation": "ValidateRayClusterSpec",
    "redis-address-env": "ValidateRayClusterSpec",
    "redis-password": "ValidateRayClusterSpec",
    "redis-username": "ValidateRayClusterSpec",
    "redis-namespace": "ValidateRayClusterSpec",
    "auth-ray-version": "ValidateRayClusterSpec",
    "auth-kubernetes-token": "ValidateRayClusterSpec, ValidateRayJobSpec, ValidateRayServiceSpec",
    "serve-port": "controllers/ray/common/service.go: BuildServeService",
    "job-suspend": "ValidateRayJobSpec",
    "job-ttl": "ValidateRayJobSpec, validateDeletionConfiguration",
    "job-cluster": "ValidateRayJobSpec",
    "job-backoff-limit": "ValidateRayJobSpec",
    "job-sidecar": "ValidateRayJobSpec",
    "job-runtime-env": "ValidateRayJobSpec",
    "job-deadline": "ValidateRayJobSpec",
    "job-metadata": "controllers/ray/common/job.go: GetMetadataJson",
    "job-entrypoint-resources": "controllers/ray/utils/dashboardclient: ConvertRayJobToReq",
    "job-submitter-containers": "controllers/ray/rayjob_controller.go: getSubmitterTemplate",
    "deletion-feature-gate": "validateDeletionConfiguration",
    "deletion-rules-alone": "validateDeletionConfiguration",
    "deletion-policy": "validateLegacyDeletionPolicies, validateDeletionRules",
    "deletion-rule-twice": "validateDeletionRules",
    "deletion-order": "validateTTLConsistency",
    "service-head-service": "ValidateRayServiceSpec",
    "service-upgrade-strategy": "ValidateRayServiceSpec",
    "service-incremental-upgrade": "ValidateClusterUpgradeOptions",
    "service-serve-config": "controllers/ray/rayservice_controller.go: updateServeDeployment",
    "cron-schedule": "ValidateRayCronJobSpec",
    "cron-time-zone": "ValidateRayCronJobSpec, of 1.7",
    "scheduler-network-tier": "controllers/ray/batchscheduler/volcano: createPodGroup",
    "scheduler-ray-job": "controllers/ray/batchscheduler: DoBatchSchedulingOnSubmission",
    # Rules of this project: the operator accepts the value, and then does not do what was intended.
    "replicas-within-bounds": "stricter",
    "num-of-hosts": "stricter",
    "group-name": "stricter",
    "auth-mode": "stricter",
    "job-submission-mode": "stricter",
    "cron-feature-gate": "stricter",
    "incremental-feature-gate": "stricter",
    "newer-field": "stricter",
    "removed-field": "stricter",
}
"""Each rule and its origin: the API server, a Go function of the operator, or `stricter` than both."""


ON_BODIES: Mapping[str, str] = {
    **RULES,
    "autoscaler-reads": "ray/autoscaler/_private/kuberay/autoscaling_config.py",
    "env-undoes": "controllers/ray/common/pod.go: setContainerEnvVars",
    "own-command": "controllers/ray/common/pod.go: BuildPod",
    "hidden-folder": "ray-project/ray, docker/base-deps/Dockerfile",
    "image-reference": "the kubelet: InvalidImageName",
    "image-version": "ray/_private/utils.py: check_version_info",
    "priority-name": "plugin Priority of the API server",
    "runtime-env": "ray/runtime_env/runtime_env.py",
    "no-room-for-demand": "what nodes offer (kuberay/offers.py)",
    "ray-container": "controllers/ray/common/pod.go: BuildPod",
    "head-port": "controllers/ray/common/service.go: BuildServiceForHeadPod",
    "job-entrypoint-shell": "controllers/ray/common/job.go: BuildJobSubmitCommand",
    "serve-config": "ray/serve/schema.py, ray/serve/config.py",
    "service-endpoints": "controllers/ray/rayservice_controller.go, common/service.go",
}
"""These, and what would not run although the API server and the operator accept it (offers.py, ray_start.py,
running.py, runtime_env.py, serve.py, demands.py)."""

ADVICE: Mapping[str, str] = {
    "uncounted-gpus": "ray/autoscaler/_private/kuberay/autoscaling_config.py",
    "tpu-hosts": "ray/autoscaler/_private/kuberay/autoscaling_config.py",
    "shared-session": "ray/_private/node.py: init_temp",
    "no-room-for-tasks": "what an idle Ray needs (kuberay/ray_start.py)",
    "more-cpus": "controllers/ray/common/pod.go: updateRayStartParamsResources",
    "host-network": "ray/_private/ray_constants.py",
    "restarted-worker": "controllers/ray/common/pod.go: DefaultWorkerPodTemplate; ray#64900",
    "undone-drain": "ray-project/ray#64454; kuberay#2724",
    "stays-suspended": "controllers/ray/raycluster_controller.go: reconcilePods",
    "managed-elsewhere": "controllers/ray/raycluster_controller.go: Reconcile",
    "no-cpu-at-all": "what nodes offer (kuberay/offers.py)",
    "head-proxy": "controllers/ray/common/pod.go: initReadinessProbeHandler; kuberay#4994",
    "fault-of-ray": "the issues in kuberay/faults.py",
    "job-metadata-lost": "controllers/ray/common/job.go: BuildJobSubmitCommand",
}
"""What is accepted, and cannot be wanted (advice.py)."""

V2_VARIABLE = "RAY_enable_autoscaler_v2"

SETS_V2 = ("1", "true")
"""Its values that enable the autoscaler's second version."""


HEAD_GROUP = "headgroup"
"""The head's group (ray-operator/controllers/ray/utils/constant.go: RayNodeHeadGroupLabelValue)."""


def groups_of(spec: ReadOnlyBody, path: Path = ("spec",)) -> Iterator[tuple[Path, Body]]:
    """The head group and the worker groups of a RayCluster's spec at `path`, each with its path."""
    yield (*path, "headGroupSpec"), spec["headGroupSpec"]
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        yield (*path, "workerGroupSpecs", index), group


def sets_autoscaler_v2(spec: ReadOnlyBody) -> bool:
    """validateWorkerGroupIdleTimeout: the version, or the variable of older operators."""
    variable = _head_variable(spec, V2_VARIABLE)
    named = (spec.get("autoscalerOptions") or {}).get("version") == "v2"
    return named or (variable is not None and variable[1] in SETS_V2)


def _head_variable(spec: ReadOnlyBody, name: str) -> tuple[int, str] | None:
    """Index and value of an environment variable of the head's Ray container (util.go: EnvVarByName)."""
    containers = spec["headGroupSpec"]["template"].get("spec", {}).get("containers", ())
    for index, variable in enumerate(containers[0].get("env") or () if containers else ()):
        if variable["name"] == name:
            return index, variable.get("value", "")
    return None


@dataclass(frozen=True)
class Cluster:
    """The spec of a RayCluster, in a RayCluster, a RayJob, a RayService or a RayCronJob."""

    spec: Body
    path: Path
    """Path of the spec in the manifest."""
    annotations: Mapping[str, str]
    """Annotations that the operator validates the spec with."""
    operator: OperatorContext

    @property
    def head(self) -> Body:
        return dict(self.spec["headGroupSpec"])

    @property
    def workers(self) -> list[Body]:
        return list(self.spec.get("workerGroupSpecs", ()))

    @property
    def groups(self) -> Iterator[tuple[Path, Body]]:
        """The head group and the worker groups, each with its path."""
        return groups_of(self.spec, self.path)

    @property
    def autoscaling(self) -> bool:
        """util.go: IsAutoscalingEnabled."""
        return bool(self.spec.get("enableInTreeAutoscaling"))

    @property
    def autoscaler_v2(self) -> bool:
        """util.go: IsAutoscalingV2Enabled, which ignores whether autoscaling is enabled."""
        return bool(self.spec.get("autoscalerOptions", {}).get("version") == "v2")

    @property
    def sets_autoscaler_v2(self) -> bool:
        return sets_autoscaler_v2(self.spec)

    def head_env(self, name: str) -> tuple[Path, str] | None:
        """Path and value of an environment variable of the head's Ray container (util.go: EnvVarByName)."""
        found = _head_variable(self.spec, name)
        at = (*self.path, "headGroupSpec", "template", "spec", "containers", 0, "env")
        return ((*at, found[0]), found[1]) if found else None


def problem(rule: str, path: Path, value: Any, message: str) -> Problem:
    """A problem of a rule. Raises KeyError if RULES does not have it."""
    if rule not in RULES:
        raise KeyError(rule)
    return Problem(path, value, message, rule)
