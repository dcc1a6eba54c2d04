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
"""What is served, each with what the names of its webhooks end with. Kueue 0.15 has none for RayServices; KubeRay hands
the label of one on to its RayCluster."""


def render(settings: KueueSettings) -> str:
    """The text of the file: what Kueue's own says, and what the settings change of it."""
    said: dict[str, Any] = {
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
        # Kueue finds a certificate there that is good, and keeps it.
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": list(INTEGRATIONS)},
        # An API server of its own behind the cluster's, which namespaces could not be deleted without.
        "featureGates": {"VisibilityOnDemand": False, "ElasticJobsViaWorkloadSlices": settings.elastic_jobs},
    }
    if settings.fair_sharing:
        said["fairSharing"] = {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    if settings.wait_for_pods_ready:
        said["waitForPodsReady"] = _wait_for_pods_ready(settings.wait_for_pods_ready)
    return yaml.safe_dump(said, sort_keys=False)


def _wait_for_pods_ready(said: WaitForPodsReadySettings) -> dict[str, Any]:
    recovery, limit = said.recovery_timeout_seconds, said.backoff_limit_count
    return {
        "timeout": f"{said.timeout_seconds}s",
        **({"recoveryTimeout": f"{recovery}s"} if recovery else {}),
        "blockAdmission": said.block_admission,
        "requeuingStrategy": {"timestamp": "Eviction", **({} if limit is None else {"backoffLimitCount": limit})},
    }
