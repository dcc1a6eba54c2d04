"""Objects as the API server shows them, of the stack of tests/unit/planning/stacks.py."""

from typing import Any

CREATED = "2026-01-01T00:00:00Z"


def pod(cluster: str, group: str, gpus: int = 0, node: str | None = None, **status: Any) -> dict[str, Any]:
    """A pod of a RayCluster `<namespace>/<name>`; `head` is the head's group."""
    namespace, _, name = cluster.partition("/")
    kind = {"ray.io/node-type": "head"} if group == "head" else {"ray.io/node-type": "worker", "ray.io/group": group}
    requests = {"requests": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "metadata": {
            "name": f"{name}-{group}",
            "namespace": namespace,
            "labels": kind,
            "annotations": {"scheduling.k8s.io/group-name": f"ray-{name}-pg"},
            "ownerReferences": [{"kind": "RayCluster", "name": name, "controller": True}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "ray", "resources": requests}, {"name": "autoscaler"}]},
        "status": {"phase": "Running" if node else "Pending", **status},
    }


def ray(cluster: str, ready: str | None = None, refused: str = "") -> dict[str, Any]:
    """A RayCluster with its time of provisioning, or whose pods the API server refuses."""
    namespace, _, name = cluster.partition("/")
    conditions = [{"type": "RayClusterProvisioned", "status": "True", "lastTransitionTime": ready}] if ready else []
    failed = [{"type": "ReplicaFailure", "status": "True", "message": refused}] if refused else []
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": CREATED},
        "status": {"state": "ready" if ready else "", "conditions": [*conditions, *failed]},
    }


def nodes(*names: str) -> list[dict[str, Any]]:
    """Nodes `<pool>-<number>`."""
    return [
        {"metadata": {"name": name, "labels": {"ray-platform.dev/pool": name.rpartition("-")[0]}}} for name in names
    ]
