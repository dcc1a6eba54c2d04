"""Renders the settings of a RayCluster into the body for the API server. Pure functions."""

from collections.abc import Mapping
from typing import Any

from components.logs.settings import LogsSettings
from components.priority_classes.settings import NO_PRIORITIES, PriorityNames
from components.ray_cluster.fault_tolerance import RedisPlace
from components.ray_cluster.pods import CLUSTER_LABEL, NODE_TYPE_LABEL, Body
from components.ray_cluster.scheduling import NO_SCHEDULING, Scheduling, retained_head, with_counted_replicas
from components.ray_cluster.scheduling import annotations as scheduling_annotations
from components.ray_cluster.scheduling import labels as scheduling_labels
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.spec import CLIENT_PORT, DASHBOARD_PORT, HEAD_PORTS, cluster_spec
from core.nodes import NodePool

__all__ = [
    "API_VERSION",
    "CLIENT_PORT",
    "DASHBOARD_PORT",
    "HEAD_PORTS",
    "TOKEN_KEY",
    "Body",
    "head_disruption_budget",
    "head_ports",
    "head_service",
    "metrics_ports",
    "ray_cluster",
    "requires_token",
    "serve_ports",
]

API_VERSION = "ray.io/v1"

TOKEN_KEY = "auth_token"  # noqa: S105 (a key, not a token)
"""Key of the Secret with a RayCluster's token (ray-operator/controllers/ray/utils/constant.go)."""


def head_service(name: str, spec: Mapping[str, Any]) -> str:
    """Name of the head's Service of a cluster (ray-operator/controllers/ray/utils/util.go, GenerateHeadServiceName)."""
    service = spec["headGroupSpec"].get("headService") or {}
    return (service.get("metadata") or {}).get("name") or f"{name}-head-svc"


def head_ports(spec: Mapping[str, Any]) -> dict[str, int]:
    """Ports of the head by KubeRay's names: those of Ray's container, else the defaults."""
    configured = _named_ports(spec["headGroupSpec"])
    return {name: configured.get(name, port) for name, port in HEAD_PORTS.items()}


def serve_ports(spec: Mapping[str, Any]) -> list[int]:
    """Ports of Serve's Service: that named `serve`, and with KubeRay 1.6 those whose names begin with `serve-`, such as
    `serve-grpc` (ray-operator/controllers/ray/common/service.go: BuildServeService)."""
    further = [port for name, port in _named_ports(spec["headGroupSpec"]).items() if name.startswith("serve-")]
    return sorted({head_ports(spec)["serve"], *further})


def metrics_ports(spec: Mapping[str, Any]) -> list[int]:
    """Ports of metrics of head and workers: those of Ray's containers, else the default, which KubeRay adds to them
    (ray-operator/controllers/ray/common/pod.go: DefaultHeadPodTemplate, DefaultWorkerPodTemplate)."""
    groups = [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())]
    return sorted({_named_ports(group).get("metrics", HEAD_PORTS["metrics"]) for group in groups})


def _named_ports(group: Mapping[str, Any]) -> dict[str, int]:
    container = group["template"]["spec"]["containers"][0]
    return {port["name"]: port["containerPort"] for port in container.get("ports") or () if port.get("name")}


def ray_cluster(
    settings: RayClusterSettings,
    pools: tuple[NodePool, ...],
    service_account: Any = None,
    priorities: PriorityNames = NO_PRIORITIES,
    redis: RedisPlace | None = None,
    scheduling: Scheduling = NO_SCHEDULING,
    logs: LogsSettings | None = None,
) -> Body:
    """The `ray.io/v1` RayCluster. KubeRay defaults the fields that are not set.

    `service_account`: of head and workers if the settings name none; a name or its Output. None: KubeRay creates one
    for the head.
    `priorities`: existing PriorityClasses for head and workers.
    `redis`: where the GCS stores its tables, if the settings ask for fault tolerance.
    `scheduling`: its scheduler and its queue.
    `logs`: where the logs of its pods go; None: they stay in the pods.
    Raises Problems, with paths in the settings, as `cluster_spec` does.
    """
    rendered = cluster_spec(settings, pools, service_account, priorities, redis, logs)
    spec = retained_head(settings, scheduling, rendered)
    spec = with_counted_replicas(scheduling, spec)
    labels = {**settings.labels, **scheduling_labels(settings, scheduling)}
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCluster",
        "metadata": {
            "name": settings.name,
            **({"labels": labels} if labels else {}),
            "annotations": {
                **settings.annotations,
                **scheduling_annotations(settings, scheduling),
                # In the foreground the garbage collector would delete pods and clean-up Jobs before the operator does.
                "pulumi.com/deletionPropagationPolicy": "background",
            },
        },
        "spec": spec,
    }


def requires_token(body: Body) -> bool:
    """Whether clients of the RayCluster need a token: by its `authOptions`, or by Ray's variable in the head."""
    if (body["spec"].get("authOptions") or {}).get("mode") == "token":
        return True
    env = body["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0].get("env", [])
    return {"name": "RAY_AUTH_MODE", "value": "token"} in env


def head_disruption_budget(settings: RayClusterSettings, label: str = CLUSTER_LABEL, heads: int = 1) -> Body:
    """The PodDisruptionBudget that prevents eviction of the head. An unhealthy head may be evicted.

    `label`: label of the pods with the name. `heads`: the most that have it at a time.
    """
    labels = {label: settings.name, NODE_TYPE_LABEL: "head"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{settings.name}-head"},
        "spec": {
            # Not maxUnavailable: a RayCluster has no scale subresource, so Kubernetes does not know its number of pods.
            "minAvailable": heads,
            "selector": {"matchLabels": labels},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
