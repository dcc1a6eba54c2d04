"""Objects as the API server returns them, and the status of a stack that has them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from components.queues.settings import Backend
from core.body import Body
from core.nodes import GPU_RESOURCE
from stacks.commands.status.clusters import ClusterStatus, cluster_status
from stacks.commands.status.snapshot import Found, Live
from stacks.commands.status.tenants import StackStatus, stack_status
from tests.unit.planning.stacks import stack, tenant

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)

MADE = "2026-01-01T10:00:00Z"
"""When each object was created: two hours ago."""

OPERATOR = (
    {
        "metadata": {"name": "kuberay-operator-0"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    },
)


def metadata(name: str, **more: Any) -> Body:
    return {"name": name, "namespace": "team-a", "uid": f"uid-of-{name}", "creationTimestamp": MADE, **more}


def owned(kind: str, name: str) -> list[Body]:
    """The ownerReferences to an object."""
    return [{"kind": kind, "name": name, "uid": f"uid-of-{name}"}]


def condition(kind: str, status: str, message: str = "", reason: str = "Reported") -> Body:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": MADE}


READY = (condition("HeadPodReady", "True"), condition("RayClusterProvisioned", "True"))
SUSPENDED = condition("RayClusterSuspended", "True", "suspended")
STARTING = (
    condition("HeadPodReady", "False", "containers not ready"),
    condition("RayClusterProvisioned", "False", "no"),
)


def container(gpus: int) -> Body:
    resources = {GPU_RESOURCE: str(gpus)} if gpus else {}
    return {"name": "ray", "resources": {"requests": resources, "limits": resources}}


def ray_cluster(name: str, *conditions: Body, replicas: int = 1, most: int = 3, **more: Any) -> Body:
    """A RayCluster whose workers have eight GPUs each. `more`: of its spec, or `metadata`."""
    about = metadata(name, **more.pop("metadata", {}))
    group = {
        "groupName": "a100-8gpu",
        "replicas": replicas,
        "minReplicas": 0,
        "maxReplicas": most,
        "template": {"spec": {"containers": [container(8)]}},
    }
    spec = {
        "enableInTreeAutoscaling": True,
        "headGroupSpec": {"template": {"spec": {"containers": [container(0)]}}},
        "workerGroupSpecs": [group],
        **more,
    }
    known = {"state": "ready" if READY[1] in conditions else None, "conditions": list(conditions)}
    return {"metadata": about, "spec": spec, "status": known if conditions else {}}


def pod(name: str, cluster: str = "training", gpus: int = 0, node: str | None = "node-0", **status: Any) -> Body:
    """A Ready head, or with GPUs a worker; without a node a waiting one. `status`: other fields of its status."""
    kind, group = ("worker", "a100-8gpu") if gpus else ("head", "headgroup")
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": kind, "ray.io/group": group}
    known = {"phase": "Running", "conditions": [condition("Ready", "True")]} if node else UNSCHEDULED
    spec = {"containers": [container(gpus)], **({"nodeName": node} if node else {})}
    return {"metadata": metadata(name, labels=labels), "spec": spec, "status": {**known, **status}}


NO_ROOM = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
UNSCHEDULED = {"phase": "Pending", "conditions": [condition("PodScheduled", "False", NO_ROOM)]}


def warning(about: str, message: str, kind: str = "RayJob") -> Body:
    """An event."""
    subject = {"kind": kind, "name": about}
    return {"type": "Warning", "reason": "R", "message": message, "involvedObject": subject, "lastTimestamp": MADE}


def found(unreadable: dict[str, str] | None = None, **objects: Sequence[Body]) -> Found:
    """What exists in a namespace."""
    return Found(objects, unreadable or {})


def cluster(
    body: Body, *pods: Body, backend: Backend | None = None, in_stack_file: bool = True, **objects: Any
) -> ClusterStatus:
    """The status of a RayCluster among other objects of its namespace."""
    within = found(rayclusters=[body], pods=pods, **objects)
    return cluster_status(body, within, Live(NOW, {}, operator_pods=OPERATOR), backend, in_stack_file=in_stack_file)


def status(namespace: Found, shared: Found = Found(), **settings: Any) -> StackStatus:  # noqa: B008 (frozen)
    """The status of a stack with one tenant, team-a, whose RayCluster is `training`, or of other `tenants`."""
    known = stack(*settings.pop("tenants", [tenant("team-a")]), **settings)
    namespaces = {each.namespace_name: found() for each in known.tenants} | {"team-a": namespace}
    return stack_status(known, known.tenants, Live(NOW, namespaces, shared, OPERATOR))
