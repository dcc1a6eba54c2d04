"""The stack: a Redis of three nodes, and two RayClusters of one name that keep their GCS in it."""

import copy
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from local.images import REDIS
from testbed.platform_stack import training
from testbed.pods.platform import NAMESPACE, Platform

OTHER = "team-b"

WORKER = {
    "groupName": "one",
    "cpu": 1,
    "memory": "4Gi",
    "replicas": 1,
    "rayStartParams": {"object-store-memory": "100000000"},
    "podTemplate": {
        "spec": {"containers": [{"name": "ray-worker", "resources": {"requests": {"cpu": "50m", "memory": "512Mi"}}}]}
    },
}


def fault_tolerant(settings: dict[str, Any]) -> None:
    """Two tenants, each with a RayCluster of the same name; one of these has a worker, which stays.

    Volcano schedules them, but not the cleanup Job of a RayCluster. Prometheus scrapes Redis and the gateways.
    """
    settings["scheduler"] = {"volcano": {}}
    exporter = {"resources": {"cpu": "1m", "memory": "32Mi"}}
    settings["redis"] = {"image": REDIS.reference, "exporter": exporter}
    settings["network"] = {"monitoring": ["monitoring"]}
    settings["monitoring"] = {"mode": "scrapeConfig", "interval": "15s"}
    cluster = training(settings)
    for key in ("workers", "idleTimeout"):
        del cluster[key]
    cluster |= {"faultTolerance": True, "autoscaling": False}
    settings["tenants"].append({"name": OTHER, "allowDelete": True, "clusters": [copy.deepcopy(cluster)]})
    cluster["workerGroups"] = [WORKER]


def started(platform: Platform) -> dict[str, dict[str, int]]:
    """The restart count of each container of Ray's pods, by pod."""
    pods = {**platform.pods("ray.io/cluster", NAMESPACE), **platform.pods("ray.io/cluster", OTHER)}
    return {name: _restarts(pod) for name, pod in pods.items()}


def gateway_counts(platform: Platform) -> dict[str, float]:
    """The counters of the gateway beside the head (docs/redis-gateway.md, Probes, metrics, end)."""
    metrics = platform.in_head("wget", "-qO-", "http://127.0.0.1:9399/metrics")
    samples = (sample for family in text_string_to_metric_families(metrics) for sample in family.samples)
    return {sample.name: sample.value for sample in samples if not sample.labels}


def _restarts(pod: dict[str, Any]) -> dict[str, int]:
    """The restart count of each container of a pod."""
    status = pod["status"]
    each = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    return {container["name"]: container["restartCount"] for container in each}
