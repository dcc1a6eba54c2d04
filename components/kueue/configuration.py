"""The file that configures Kueue's manager, `controller_manager_config.yaml` (kueue, apis/config/v1beta2)."""

from typing import Any

import yaml

from .settings import KueueSettings, WaitForPodsReadySettings

FILE = "controller_manager_config.yaml"
"""Name of the file, and its key in the ConfigMap."""

WEBHOOK_PORT = 9443
METRICS_PORT = 8443
HEALTH_PORT = 8081

CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 -- where the Secret is mounted
"""Folder with the certificate of the webhook, as in the Deployment of Kueue's tree."""

INTEGRATIONS = {"ray.io/raycluster": "raycluster", "ray.io/rayjob": "rayjob"}
"""The enabled integrations, each with the suffix of its webhooks' names. Kueue 0.15 has none for RayServices; KubeRay
copies the label of a RayService to its RayCluster."""


def render(settings: KueueSettings) -> str:
    """The text of the file: Kueue's own configuration with the changes of the settings."""
    configuration: dict[str, Any] = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": settings.namespace,
        "health": {"healthProbeBindAddress": f":{HEALTH_PORT}"},
        "metrics": {"bindAddress": f":{METRICS_PORT}" if settings.metrics else "0"},
        "webhook": {"port": WEBHOOK_PORT, "certDir": CERTIFICATES},
        "leaderElection": {
            "leaderElect": True,
            "resourceName": "c1f6bfd2.kueue.x-k8s.io",
            "resourceNamespace": settings.namespace,
        },
        "controller": {
            "groupKindConcurrency": {
                "Workload.kueue.x-k8s.io": 5,
                **dict.fromkeys(
                    (f"{kind}.kueue.x-k8s.io" for kind in ("LocalQueue", "Cohort", "ClusterQueue", "ResourceFlavor")), 1
                ),
            }
        },
        "clientConnection": {"qps": 50, "burst": 100},
        # Kueue finds a valid certificate there and keeps it.
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": list(INTEGRATIONS)},
        # Visibility adds an aggregated API server. While it is down, namespaces cannot be deleted.
        "featureGates": {"VisibilityOnDemand": False, "ElasticJobsViaWorkloadSlices": settings.elastic_jobs},
    }
    if settings.fair_sharing:
        configuration["fairSharing"] = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    if settings.wait_for_pods_ready:
        configuration["waitForPodsReady"] = _wait_for_pods_ready(settings.wait_for_pods_ready)
    return yaml.safe_dump(configuration, sort_keys=False)


def _wait_for_pods_ready(settings: WaitForPodsReadySettings) -> dict[str, Any]:
    recovery, limit = settings.recovery_timeout_seconds, settings.backoff_limit_count
    return {
        "timeout": f"{settings.timeout_seconds}s",
        **({"recoveryTimeout": f"{recovery}s"} if recovery else {}),
        "blockAdmission": settings.block_admission,
        "requeuingStrategy": {"timestamp": "Eviction", **({} if limit is None else {"backoffLimitCount": limit})},
    }
