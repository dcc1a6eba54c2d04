"""Nodes with their pods, for a page: of a plan, and live ones. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.capacity.placement import Node
from components.ray_cluster.pods import CLUSTER_LABEL
from components.ray_job.manifests import SUBMITTER_LABEL
from components.rollout.pods import group, kind
from core.nodes import GPU_PRODUCT_LABEL, GPU_RESOURCE, NodePool
from core.quantities import amount
from stacks.commands.plan.drawing import MOST_NODES
from stacks.commands.status.clusters import ENDED, phase, requested
from stacks.commands.status.snapshot import Body, Found
from stacks.planning.plan import Plan

COLOURS = 8
"""Colours of the page, which owners of pods share in turn."""


@dataclass(frozen=True)
class Pods:
    """Pods of one group on one node."""

    owner: str
    """`<namespace>/<name>` of the RayCluster, or of what else they belong to."""
    group: str
    """The worker group, or `head`."""
    number: int
    gpus: int
    """Of all of them."""
    colour: int
    """Of their owner, from 0."""


@dataclass(frozen=True)
class NodeShown:
    """A node with its pods."""

    name: str
    gpus: int
    pods: tuple[Pods, ...]
    notes: tuple[str, ...] = ()
    """What keeps pods away from it: `not ready`, `cordoned`."""

    @property
    def held(self) -> int:
        """GPUs of its pods."""
        return sum(each.gpus for each in self.pods)

    @property
    def cells(self) -> list[int | None]:
        """For each GPU the colour of its pod; None for a free one."""
        taken: list[int | None] = [each.colour for each in self.pods for _ in range(each.gpus)]
        return [*taken, *[None] * (self.gpus - len(taken))]


@dataclass(frozen=True)
class PoolShown:
    """Nodes of one shape."""

    title: str
    nodes: tuple[NodeShown, ...]
    """At most MOST_NODES, those with pods first if there are more."""
    number: int
    """All of them."""
    held: int
    gpus: int


def planned(plan: Plan) -> list[PoolShown]:
    """The nodes of the stack file with the pods that RayClusters start with."""
    every = plan.started.nodes
    colours = colours_of(plan, ())
    pools = ((pool.pool, [_planned(node, colours) for node in every if node.pool == pool]) for pool in plan.pools)
    return [_pool(title, nodes) for title, nodes in pools]


def _planned(node: Node, colours: Mapping[str, int]) -> NodeShown:
    counted = Counter((each.owner, each.group, int(each.gpus)) for each in node.pods)
    return NodeShown(f"{node.pool.pool}-{node.number}", node.pool.gpus, tuple(_pods(counted, colours)))


def live(plan: Plan, found: Found, namespaces: Mapping[str, Found]) -> list[PoolShown]:
    """The nodes of the cluster with the tenants' pods. Without the right to read nodes, those that have pods."""
    placed: dict[str, Counter[tuple[str, str, int]]] = {}
    for namespace, objects in namespaces.items():
        for pod in objects.all("pods"):
            if (node := pod["spec"].get("nodeName")) and phase(pod) not in ENDED:
                owner, its_group = _owner(pod)
                placed.setdefault(node, Counter())[f"{namespace}/{owner}", its_group, requested(pod)] += 1
    colours = colours_of(plan, (owner for counted in placed.values() for owner, _, _ in counted))
    bodies = {each["metadata"]["name"]: each for each in found.all("nodes")}
    unknown = "Nodes that this account must not read" if found.unreadable else "Nodes that do not exist any more"
    pools: dict[str, list[NodeShown]] = {pool.pool: [] for pool in plan.pools} if bodies else {}
    for name in sorted({*bodies, *placed}, key=_natural):
        pods = tuple(_pods(placed.get(name, Counter()), colours))
        body = bodies.get(name)
        gpus = _gpus(body) if body else sum(each.gpus for each in pods)
        title = _pool_of(body, plan.pools) if body else unknown
        pools.setdefault(title, []).append(NodeShown(name, gpus, pods, tuple(_notes(body or {}))))
    return [_pool(title, nodes) for title, nodes in pools.items()]


def colours_of(plan: Plan, others: Iterable[str]) -> dict[str, int]:
    """A colour for each owner of pods: RayClusters in the order of the stack file, then the others by name."""
    own = [cluster.name for tenant in plan.tenants for cluster in tenant.clusters]
    return {name: place % COLOURS for place, name in enumerate(dict.fromkeys([*own, *sorted(set(others))]))}


def _pool(title: str, nodes: Sequence[NodeShown]) -> PoolShown:
    shown = nodes if len(nodes) <= MOST_NODES else sorted(nodes, key=lambda node: not node.pods)[:MOST_NODES]
    held, gpus = sum(each.held for each in nodes), sum(each.gpus for each in nodes)
    return PoolShown(title, tuple(shown), len(nodes), held, gpus)


def _pods(counted: Mapping[tuple[str, str, int], int], colours: Mapping[str, int]) -> Iterator[Pods]:
    """Those with the most GPUs first."""
    for (owner, its_group, gpus), number in sorted(counted.items(), key=lambda item: (-item[0][2], item[0])):
        yield Pods(owner, its_group, number, gpus * number, colours.get(owner, len(colours) % COLOURS))


def _owner(pod: Body) -> tuple[str, str]:
    """Name of the RayCluster, RayJob or whatever else a pod belongs to, and its group."""
    metadata: Any = pod["metadata"]
    labels = metadata.get("labels") or {}
    if cluster := labels.get(CLUSTER_LABEL):
        return cluster, "head" if kind(pod) == "head" else group(pod) or "worker"
    if job := labels.get(SUBMITTER_LABEL):
        return job, "submitter"
    owners = metadata.get("ownerReferences") or ()
    return (owners[0]["name"], "pod") if owners else (metadata["name"], "pod")


def _gpus(node: Body) -> int:
    return int(amount(str(((node.get("status") or {}).get("allocatable") or {}).get(GPU_RESOURCE, 0))))


def _pool_of(node: Body, pools: Iterable[NodePool]) -> str:
    """The pool of the stack file whose labels, product and GPUs a node has; of several the one with the most labels."""
    labels, gpus = node["metadata"].get("labels") or {}, _gpus(node)
    meant = [
        pool
        for pool in pools
        if gpus == pool.gpus
        and pool.labels.items() <= labels.items()
        and (pool.gpu_product is None or labels.get(GPU_PRODUCT_LABEL) == pool.gpu_product)
    ]
    named = max(meant, key=lambda pool: (len(pool.labels), pool.gpu_product is not None), default=None)
    return named.pool if named else "Nodes of no pool of the stack file"


def _notes(node: Body) -> Iterator[str]:
    conditions = (node.get("status") or {}).get("conditions") or ()
    if any(each["type"] == "Ready" and each["status"] != "True" for each in conditions):
        yield "not ready"
    if (node.get("spec") or {}).get("unschedulable"):
        yield "cordoned"


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which node-2 comes before node-10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
