"""The messages of the API server and the operator that correspond to our rules, and the rules that are stricter."""

from collections.abc import Mapping

STRICTER: Mapping[str, str] = {
    "replicas-within-bounds": "the operator accepts replicas out of bounds and silently uses the bounds",
    "num-of-hosts": "a group of 0 hosts never gets a pod, and nothing reports it",
    "group-name": "the name becomes part of a pod's name, which the API server then refuses at every try",
    "auth-mode": "authOptions without a mode leaves the cluster open to every client",
    "job-submission-mode": "a job of an unknown mode is never submitted, and waits for ever",
    "cron-feature-gate": "without its feature gate no controller reads a RayCronJob",
    "incremental-feature-gate": "without its feature gate the upgrade is an ordinary one",
    "newer-field": "the API server of an older KubeRay silently drops the field",
    "removed-field": "the API server of a newer KubeRay silently drops the field",
}
"""Rules that neither the API server nor the operator has, each with the reason."""

MESSAGES: Mapping[str, tuple[str, ...]] = {
    "unknown-kind": ("no matches for kind",),
    "unknown-field": ("unknown field",),
    "required-field": (
        "Required value",
        # The API server takes an object without a spec.
        "should have at least one container",
        "one of RayClusterSpec or ClusterSelector",
        "empty spec string",
    ),
    "wrong-type": ("must be of type", "Invalid value", "cannot unmarshal", "must be an object", "must be an array"),
    "not-allowed-value": ("Unsupported value", "must be either"),
    "wrong-format": ("should match",),
    "out-of-range": ("should be greater than or equal", "should have at least", "cannot unmarshal number", "int32"),
    "duplicate-item": ("Duplicate value",),
    "deletion-strategy-style": ("legacy policies (onSuccess/onFailure)", "deletionStrategy requires either BOTH"),
    "deletion-condition": (
        "JobStatus and JobDeploymentStatus cannot be used together",
        "requires either the JobStatus",
    ),
    "object-name": ("metadata.namespace", "metadata.generateName"),
    "object-label": ("metadata.labels",),
    "object-annotation": ("metadata.annotations",),
    "ray-cluster-name": ("RayCluster name should", "metadata.name", "metadata.generateName"),
    "ray-job-name": ("RayJob name should", "metadata.name", "metadata.generateName"),
    "ray-service-name": ("RayService name should", "metadata.name", "metadata.generateName"),
    "ray-cron-job-name": ("RayJob name should", "metadata.name", "metadata.generateName"),
    "initializing-timeout": ("annotation ray.io/initializing-timeout",),
    "cluster-upgrade-strategy": ("upgradeStrategy cannot be set when RayCluster is created by",),
    "group-containers": ("should have at least one container", "index out of range"),
    "group-resources": ("resource fields should not be set in both rayStartParams and Resources",),
    "group-start-labels": ("rayStartParams['labels'] is not supported",),
    "group-label": ("invalid label key", "invalid label value"),
    "group-name-unique": ("worker group names must be unique",),
    "negative-replicas": ("has negative minReplicas", "has negative maxReplicas"),
    "replica-bounds": ("greater than maxReplicas",),
    "group-suspend": ("can be suspended only when", "cannot be suspended with Autoscaler"),
    "group-idle-timeout": (
        "idleTimeoutSeconds must be non-negative",
        "idleTimeoutSeconds is set, but autoscaler v2 is not",
    ),
    "autoscaler-idle-timeout": ("autoscalerOptions.idleTimeoutSeconds must be non-negative",),
    "autoscaler-version-env": ("when enableInTreeAutoscaling is false", "please only use the former"),
    "autoscaler-restart-policy": ("should be Never or unset when using autoscaler V2",),
    "redis-annotation": ("annotation and GcsFaultToleranceOptions are both set",),
    "redis-address-env": ("which implicitly enables GCS fault tolerance", "cannot set `RAY_REDIS_ADDRESS`"),
    "redis-password": ("cannot set `redis-password`", "cannot set `REDIS_PASSWORD`"),
    "redis-username": ("cannot set redis username",),
    "redis-namespace": ("cannot set `ray.io/external-storage-namespace`",),
    "auth-ray-version": ("RayVersion was not specified", "RayVersion format is invalid", "minimum Ray version is"),
    "auth-kubernetes-token": (
        "authOptions.secretName is also set",
        "authOptions.mode not set to 'token'",
        "K8s token auth mode is currently not supported",
    ),
    "serve-port": ("Please specify a port named 'serve'",),
    "job-suspend": ("is not allowed to be suspended", "doesn't support the suspend operation"),
    "job-ttl": ("TTLSecondsAfterFinished",),
    "job-cluster": ("one of RayClusterSpec or ClusterSelector", "cluster name in ClusterSelector should not be empty"),
    "job-backoff-limit": ("BackoffLimit is incompatible", "backoffLimit must be a positive integer"),
    "job-sidecar": ("SidecarMode",),
    "job-runtime-env": ("failed to unmarshal RuntimeEnvYAML", "yaml:", "json:"),
    "job-deadline": ("activeDeadlineSeconds must be a positive integer",),
    "job-metadata": ("failed to parse Ray version", "must be at least 2.6.0"),
    "job-entrypoint-resources": ("invalid character", "cannot unmarshal", "unexpected end of JSON"),
    "job-submitter-containers": ("index out of range",),
    "deletion-feature-gate": ("RayJobDeletionPolicy feature gate must be enabled",),
    "deletion-rules-alone": ("mutually exclusive",),
    "deletion-policy": (
        "cannot be unset when DeletionStrategy is enabled",
        "the ClusterSelector mode doesn't support DeletionStrategy",
        "not supported when ClusterSelector is set",
        "not supported with autoscaling enabled",
        "does not support RayCluster with autoscaling enabled",
        "while deletion policy is 'DeleteNone'",
    ),
    "deletion-rule-twice": ("duplicate rule for",),
    "deletion-order": ("TTL (",),
    "service-head-service": ("headService.metadata.name should not be set",),
    "service-upgrade-strategy": ("Spec.UpgradeStrategy.Type value", "nil pointer dereference"),
    "service-incremental-upgrade": (
        "required for NewClusterWithIncrementalUpgrade",
        "maxSurgePercent must be",
        "stepSizePercent must be",
        "intervalSeconds must be",
    ),
    "service-serve-config": ("cannot unmarshal", "yaml:", "error converting YAML"),
    "cron-schedule": ("invalid cron schedule", "slice bounds out of range"),
    "scheduler-network-tier": ("failed to convert volcano.sh/network-topology-highest-tier-allowed",),
    "scheduler-ray-job": ("gang scheduling does not support", "only RayCluster is supported", "KAI-Scheduler does not"),
}
"""For each other rule, parts of their messages."""


def reports(rule: str, error: str) -> bool:
    """Whether an error corresponds to that rule."""
    return any(part in error for part in MESSAGES.get(rule, ()))
