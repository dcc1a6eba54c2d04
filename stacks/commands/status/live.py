"""Reads what a report shows, with the rights of the account that runs the command. Changes nothing.

A kind that this account must not read is recorded with the API server's reason, and the others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from components.access.personas import RAY_KINDS
from components.cluster import Cluster, ClusterUnreachableError, ForbiddenError
from components.monitoring.metrics import Recorded
from components.monitoring.prometheus import service_of
from components.queues.kueue import API_VERSION as KUEUE
from components.queues.settings import Backend
from components.queues.volcano import API_VERSION as VOLCANO
from components.ray_cluster.manifests import API_VERSION as RAY
from components.ray_cluster.readiness import OPERATOR_PODS, when
from components.workloads import path_of
from core.body import Body
from stacks.commands.status.budgets import QUEUES
from stacks.commands.status.snapshot import Found, Live, Usage, Workload, lacks_pods

_AT_ONCE = 8
"""Namespaces that are read at the same time."""

_OF_QUEUES: Mapping[Backend, tuple[str, str]] = {"volcano": (VOLCANO, "podgroups"), "kueue": (KUEUE, "workloads")}
"""API versions of the schedulers, and the kinds by which they keep RayClusters and RayJobs waiting."""

_NO_KUBERAY = "the cluster has no such kind (ray.io/v1): is KubeRay installed, and is this the right context?"

Reads = Mapping[str, Callable[[], Sequence[Body] | None]]
"""A list for each plural."""


def look(cluster: Cluster, namespaces: Iterable[str], operator_namespace: str, backend: Backend | None) -> Live:
    """Everything that exists in the namespaces, and the queues of the backend.

    Raises ClusterUnreachableError if the API server does not answer or does not know this account.
    """
    # First, by itself: an API server that does not answer is noticed once.
    operator = _found({"pods": partial(cluster.list, "v1", "pods", operator_namespace, labels=OPERATOR_PODS)})
    names = list(namespaces)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = dict(zip(names, threads.map(lambda name: namespace(cluster, name, backend), names), strict=True))
    known = None if operator.unreadable else tuple(operator.all("pods"))
    return Live(datetime.now(UTC), found, _queues(cluster, backend), known)


_SIMULATED = "kwok.x-k8s.io/node"
"""Annotation of simulated nodes (kwok.sigs.k8s.io)."""


def simulated(cluster: Cluster) -> bool:
    """Whether the nodes are simulated, so that no pod has a process; False for an account that must not read nodes."""
    with suppress(ClusterUnreachableError):
        found = cluster.request("GET", "/api/v1/nodes", query={"limit": "1"}) or {}
        return any(_SIMULATED in (each["metadata"].get("annotations") or {}) for each in found.get("items") or ())
    return False


def nodes(cluster: Cluster) -> Found:
    """The nodes of the cluster, which not every account may read. Raises ClusterUnreachableError."""
    return _found({"nodes": partial(cluster.list, "v1", "nodes")})


def workloads(cluster: Cluster, parts: Iterable[Workload]) -> dict[Workload, Body | None]:
    """These Deployments and StatefulSets, except those that this account must not read. Raises
    ClusterUnreachableError."""
    found: dict[Workload, Body | None] = {}
    for each in parts:
        with suppress(ForbiddenError):
            found[each] = cluster.get("apps/v1", each.plural, each.namespace, each.name)
    return found


def refusals(cluster: Cluster, parts: Mapping[Workload, Body | None]) -> dict[Workload, str]:
    """Why these Deployments and StatefulSets lack pods, by their newest warnings; without those that have all pods,
    and those whose events this account must not read. Raises ClusterUnreachableError."""
    found: dict[Workload, str] = {}
    for each, body in parts.items():
        if body is None or not lacks_pods(body):
            continue
        with suppress(ForbiddenError):
            events = cluster.list("v1", "events", each.namespace, fields="type=Warning") or ()
            if newest := max(filter(each.is_about, events), key=when, default=None):
                found[each] = f"{newest.get('reason')}: {newest.get('message')}"
    return found


_RECORDS = {
    Recorded.HELD: "gpus_held",
    Recorded.USED: "gpus_used",
    Recorded.HOURS_HELD: "hours_held",
    Recorded.HOURS_USED: "hours_used",
    Recorded.HOURS_WASTED: "hours_wasted",
    Recorded.COST_OF_DAY: "cost",
}
"""The record of each field of Usage."""

_QUERY = f'sum by (__name__) ({{__name__=~"{"|".join(_RECORDS)}"}})'


def usages(cluster: Cluster, prometheus: str, tenants: Iterable[str]) -> dict[str, Usage]:
    """What is recorded of tenants, by their namespaces; without those whose metrics this account may not read, or whose
    proxy does not answer. `prometheus`: the namespace of the stack's own."""

    def ask(tenant: str) -> Usage | None:
        path = f"{path_of(prometheus, service_of(tenant))}/api/v1/query"
        with suppress(ClusterUnreachableError):
            answer = cluster.request("GET", path, query={"query": _QUERY})
            series = answer["data"]["result"] if answer else ()
            values = {_RECORDS[each["metric"]["__name__"]]: float(each["value"][1]) for each in series}
            return Usage(**values) if values else None
        return None

    names = list(tenants)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        return {name: usage for name, usage in zip(names, threads.map(ask, names), strict=True) if usage}


def namespace(cluster: Cluster, name: str, backend: Backend | None) -> Found:
    reads = {
        **{plural: partial(cluster.list, RAY, plural, name) for plural in RAY_KINDS},
        "pods": partial(cluster.list, "v1", "pods", name),
        "events": partial(cluster.list, "v1", "events", name, fields="type=Warning"),
        "resourcequotas": partial(cluster.list, "v1", "resourcequotas", name),
    }
    if backend:
        version, plural = _OF_QUEUES[backend]
        reads[plural] = partial(cluster.list, version, plural, name)
    return _found(reads)


def _queues(cluster: Cluster, backend: Backend | None) -> Found:
    if backend is None:
        return Found()
    version, plural = _OF_QUEUES[backend][0], QUEUES[backend]
    return _found({plural: partial(cluster.list, version, plural)})


def _found(reads: Reads) -> Found:
    objects, unreadable = {}, {}
    for plural, each in reads.items():
        try:
            listed = each()
        except ForbiddenError as error:
            unreadable[plural] = str(error)
            continue
        if listed is None and plural in RAY_KINDS:
            unreadable[plural] = _NO_KUBERAY
        objects[plural] = tuple(listed or ())
    return Found(objects, unreadable)
