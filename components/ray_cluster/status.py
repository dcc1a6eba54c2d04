"""What KubeRay says of a RayCluster, as outputs of the stack. Pure functions."""

from collections.abc import Mapping
from typing import Any


def status_summary(status: Mapping[str, Any] | None) -> dict[str, Any]:
    """State, head, workers and conditions from a RayCluster's `status`; None for what it does not say.

    KubeRay leaves numbers of workers out where they are 0.
    """
    known = status or {}
    head = known.get("head") or {}
    workers = {
        name: int(known.get(f"{name}WorkerReplicas") or 0) for name in ("desired", "available", "ready", "min", "max")
    }
    return {
        "state": known.get("state"),
        "head": {"pod": head.get("podName"), "service": head.get("serviceName")},
        "workers": workers,
        "conditions": [
            {key: condition.get(key) for key in ("type", "status", "reason", "message")}
            for condition in known.get("conditions") or []
        ],
    }
