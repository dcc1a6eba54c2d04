"""What each kind of person may do, as rules of Kubernetes' RBAC. Data and pure functions.

No rule has a wildcard, lists Secrets, or lets anybody change roles or act as somebody else. What a persona may not
do is said in docs/access.md, whose table a test holds against a real API server.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Rule = dict[str, Any]

READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")

RAY_WRITE = "ray:write"
"""Ray's own verb on a RayCluster: who has it may use the cluster. Ray asks for it where callers show a token of
Kubernetes (src/ray/rpc/authentication/k8s_util.cc), and the stack's admission policy when somebody makes a RayJob."""


@dataclass(frozen=True)
class NamedCluster:
    """A RayCluster that the stack file names, as far as access to it goes."""

    name: str

    secret: str | None = None
    """Secret with its token. None: it has none, because callers show a token of Kubernetes, or nothing."""

    accounts: tuple[str, ...] = ()
    """Where callers show a token of Kubernetes: the ServiceAccounts that its pods run as."""


def rule(group: str, resources: Sequence[str], verbs: Iterable[str], names: Iterable[str] = ()) -> Rule:
    """One rule. `names`: only objects of these names."""
    named = sorted(names)
    made: Rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**made, "resourceNames": named} if named else made


RAY_GROUP = "ray.io"
RAY_KINDS = ("rayclusters", "rayjobs", "rayservices")
ALL_RAY_KINDS = (*RAY_KINDS, "raycronjobs")

_LOOK_AROUND = (rule("", ["pods", "services", "events"], READ), rule("", ["pods/log"], ["get"]))
"""What shows how a RayCluster does: its pods with their logs, its Services, and what KubeRay says of it in events."""

CLUSTER_ADMIN = (
    rule(RAY_GROUP, ALL_RAY_KINDS, (*READ, *WRITE)),
    rule("scheduling.volcano.sh", ["queues"], (*READ, *WRITE)),
    rule("scheduling.volcano.sh", ["podgroups"], READ),
)
"""Everywhere: KubeRay's kinds, and Volcano's queues with the gangs that wait in them."""

CLUSTER_ADMIN_OF_THE_OPERATOR = (
    *_LOOK_AROUND,
    rule("apps", ["deployments", "statefulsets"], READ),
    rule("apps", ["statefulsets/scale"], ["get", "update", "patch"]),
    rule("", ["pods"], ["delete"]),
)
"""In the operator's namespace, where Redis runs as well: looking, scaling a StatefulSet, starting a pod anew. Making or
changing what runs there is left to the stack file: a pod of that namespace can have the operator's account."""


def ray_cluster_admin(clusters: Iterable[NamedCluster], ingresses: bool = False) -> tuple[Rule, ...]:
    """In the tenant's namespace: all that a stack of the tenant's own makes, and all that a Ray user may do.

    `ingresses`: whether Ingresses may be made.
    """
    return (
        rule(RAY_GROUP, RAY_KINDS, (*READ, *WRITE)),
        rule("policy", ["poddisruptionbudgets"], (*READ, *WRITE)),
        # Which queue a gang waits in, and its priority. KubeRay makes it.
        rule("scheduling.volcano.sh", ["podgroups"], (*READ, "patch")),
        *([rule("networking.k8s.io", ["ingresses"], (*READ, *WRITE))] if ingresses else []),
        *_LOOK_AROUND,
        *RAY_PORT_FORWARDER,
        *use_of(clusters),
    )


RAY_USER = (rule(RAY_GROUP, RAY_KINDS, READ), *_LOOK_AROUND)
"""In the tenant's namespace: seeing RayClusters, jobs and services, their state, pods, events and logs."""

RAY_JOB_SUBMITTER = (rule(RAY_GROUP, ["rayjobs"], ["create", "delete"]),)
"""In the tenant's namespace: making RayJobs, which the admission policy keeps to clusters that the user may use."""


RAY_PORT_FORWARDER = (rule("", ["pods/portforward"], ["get", "create"]),)
"""In the tenant's namespace: `kubectl port-forward`. It asks for `create`, and since 1.31, over WebSocket, for `get`.

Heads have random names, so RBAC cannot tell whose ports are forwarded: it is any pod's of the namespace. There is no
access to Services through the API server's proxy: it is not needed, and what passes there comes from the API server.
"""


def use_of(clusters: Iterable[NamedCluster]) -> tuple[Rule, ...]:
    """Using RayClusters, as far as they ask who it is: their tokens, or Ray's own verb."""
    clusters = list(clusters)
    if not clusters:
        return ()
    secrets = [cluster.secret for cluster in clusters if cluster.secret]
    return (
        *([rule("", ["secrets"], ["get"], secrets)] if secrets else []),
        rule(RAY_GROUP, ["rayclusters"], [RAY_WRITE], [cluster.name for cluster in clusters]),
    )


def itself(cluster: NamedCluster) -> tuple[Rule, ...]:
    """For the accounts of a RayCluster's pods that show each other tokens of Kubernetes."""
    return (rule(RAY_GROUP, ["rayclusters"], [RAY_WRITE], [cluster.name]),)


RAY_DEPLOYER = tuple(
    rule(group, resources, ["get", "list", "watch", "create", "delete", "update", "patch"])
    for group, resources in (("", ["pods", "services"]), ("apps", ["deployments"]), (RAY_GROUP, ["rayclusters"]))
)
"""Monitoring, creating, deleting and updating of pods, Deployments, Services and RayClusters: what ado's guide for
actuators that deploy to Kubernetes asks for. No Secrets, no pods/exec, nothing outside the namespace."""

_STATUS = tuple(f"{kind}/status" for kind in ALL_RAY_KINDS)

VIEW = (rule(RAY_GROUP, ALL_RAY_KINDS, READ), rule(RAY_GROUP, _STATUS, ["get"]))
"""Added to Kubernetes' own role `view`, and so to `edit` and `admin`: as KubeRay's viewer roles
(ray-operator/config/rbac/ray_*_viewer_role.yaml), for RayClusters as well."""

EDIT = (rule(RAY_GROUP, ALL_RAY_KINDS, WRITE),)
"""Added to Kubernetes' own role `edit`, and so to `admin`: as KubeRay's editor roles, for RayClusters as well."""
