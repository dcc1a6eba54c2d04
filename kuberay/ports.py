"""Ports of the pods of a RayCluster, by KubeRay's names. Pure functions."""

from collections.abc import Mapping
from typing import Any

DASHBOARD_PORT = 8265
CLIENT_PORT = 10001

SERVE_PORT = "serve"
"""Name of Serve's port of the head (ray-operator/controllers/ray/utils/constant.go: ServingPortName)."""

HEAD_PORTS = {
    "gcs-server": 6379,
    "dashboard": DASHBOARD_PORT,
    "client": CLIENT_PORT,
    "metrics": 8080,
    SERVE_PORT: 8000,
}
"""The defaults of a head (ray-operator/controllers/ray/utils/constant.go)."""


def head_ports(spec: Mapping[str, Any]) -> dict[str, int]:
    """Ports of the head: those of Ray's container, else the defaults. `spec`: of a RayCluster."""
    configured = _named_ports(spec["headGroupSpec"])
    return {name: configured.get(name, port) for name, port in HEAD_PORTS.items()}


def serve_ports(spec: Mapping[str, Any]) -> list[int]:
    """Ports of Serve's Service: that named `serve`, and with KubeRay 1.6 those whose names begin with `serve-`, such as
    `serve-grpc` (ray-operator/controllers/ray/common/service.go: BuildServeService)."""
    further = [port for name, port in _named_ports(spec["headGroupSpec"]).items() if name.startswith("serve-")]
    return sorted({head_ports(spec)[SERVE_PORT], *further})


def metrics_ports(spec: Mapping[str, Any]) -> list[int]:
    """Ports of metrics of head and workers: those of Ray's containers, else the default, which KubeRay adds to them
    (ray-operator/controllers/ray/common/pod.go: DefaultHeadPodTemplate, DefaultWorkerPodTemplate)."""
    return sorted({metrics_port(group) for group in (spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ()))})


def metrics_port(group: Mapping[str, Any]) -> int:
    """Port of metrics of the pods of a group."""
    return _named_ports(group).get("metrics", HEAD_PORTS["metrics"])


def _named_ports(group: Mapping[str, Any]) -> dict[str, int]:
    container = group["template"]["spec"]["containers"][0]
    return {port["name"]: port["containerPort"] for port in container.get("ports") or () if port.get("name")}
