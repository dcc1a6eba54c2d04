"""The worker groups of a cluster: those derived from its pools, with their sizes, and those of `workerGroups`. Pure
functions.

A derived size gets at most its GPUs' share of a node's CPUs and memory, after the reserve. So workers that fit on a
node by GPUs also fit by CPUs and memory. `profile: ado` rounds CPUs up, so it does not guarantee that.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from components.ray_cluster.rules import replica_bounds
from components.ray_cluster.settings import (
    Budget,
    Profile,
    RayClusterSettings,
    Reserve,
    Variant,
    WorkerGroupSettings,
    WorkersSettings,
)
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Path, Problem, Problems, raise_problems, repeats
from core.quantities import amount

_NUMBERS = {
    "minWorkers": ("min_workers", "min_replicas"),
    "maxWorkers": ("max_workers", "max_replicas"),
    "initialWorkers": ("initial_workers", "replicas"),
}
"""Settings of a cluster with one worker group, and the fields of cluster and group."""


@dataclass(frozen=True)
class WorkerGroup:
    """Workers of one size. Amounts are Kubernetes quantities, for one worker."""

    path: Path
    """The setting that it comes from: `workers[0]`, `workers[0].variants[1]` or `workerGroups[0]`."""

    settings: WorkersSettings | WorkerGroupSettings
    """The settings: the pool's workers of which it is one size, or the group of `workerGroups`."""

    pool: NodePool | None
    name: str
    gpus: int
    cpu: str | None
    memory: str | None
    min_replicas: int
    max_replicas: int | None

    replicas: int | None = None
    """Initial workers. None: the API server's default, 0, which KubeRay raises to min_replicas."""

    idle_timeout: str | None = None
    """Idle time after which the autoscaler removes a worker. None: that of the cluster."""

    whole_node: bool = False
    """The worker is derived from a pool and has all GPUs of a node: it offers the Ray resource `full-worker`."""

    pod_templates: tuple[tuple[Path, dict[str, Any]], ...] = ()
    """Pod templates that are merged into its own, in this order, each with its path in the cluster's settings."""

    @property
    def gpu_resource(self) -> str:
        """The resource of its GPUs."""
        own = None if isinstance(self.settings, WorkersSettings) else self.settings.gpu_resource
        return own or (self.pool.gpu_resource if self.pool else GPU_RESOURCE)


def all_groups(settings: RayClusterSettings, pools: tuple[NodePool, ...]) -> tuple[WorkerGroup, ...]:
    """Every worker group of a cluster, those derived from pools first.

    Raises Problems, with paths in the cluster's settings, if a pool does not exist, a worker does not fit on a node,
    two groups have the same name, or numbers of workers are not possible.
    """
    found: list[WorkerGroup] = []
    problems: list[Problem] = []
    parts: list[tuple[Path, WorkersSettings | WorkerGroupSettings]] = []
    parts += [(("workers", index), workers) for index, workers in enumerate(settings.workers)]
    parts += [(("workerGroups", index), group) for index, group in enumerate(settings.worker_groups)]
    for path, configured in parts:
        try:
            found += _groups_of(configured, path, pools)
        except Problems as refused:
            problems += refused.problems
    problems += _names_used_twice(found)
    problems = problems or list(_numbers_of_no_group(settings, found))
    if not problems:
        found = [_with_numbers(settings, group) for group in found]
        problems = [problem for group in found for problem in _bounds(group)]
    if problems:
        raise Problems(problems)
    return tuple(found)


def pool_named(pools: tuple[NodePool, ...], name: str, path: Path) -> NodePool:
    """The pool of that name. Raises Problems, with the names of all pools, if it does not exist."""
    for pool in pools:
        if pool.pool == name:
            return pool
    names = ", ".join(pool.pool for pool in pools)
    advice = f"use one of {names}, or add it there" if names else "add it there"
    message = f"pool {name!r} is not in nodes: {advice}"
    raise Problems([Problem(path, name, message, "unknown-pool")])


def worker_groups(pool: NodePool, workers: WorkersSettings, path: Path = ("workers", 0)) -> tuple[WorkerGroup, ...]:
    """The worker groups of a pool: derived sizes, smallest first, or `variants` in their order.

    Raises Problems if a variant does not fit on a node, or the reserve leaves nothing for a worker.
    """
    variants = workers.variants or tuple(Variant(gpus=gpus) for gpus in sizes(workers.profile, pool.gpus))
    places = [(*path, "variants", index) if workers.variants else path for index in range(len(variants))]
    groups = [_cut(pool, workers, variant, path, place) for variant, place in zip(variants, places, strict=True)]
    problems = [problem for group in groups for problem in _fit(group, (*path, "reserve"))]
    if problems:
        # Derived sizes that do not fit have one cause, so the first problem is enough.
        raise Problems(problems if workers.variants else problems[:1])
    return tuple(groups)


def _groups_of(
    configured: WorkersSettings | WorkerGroupSettings, path: Path, pools: tuple[NodePool, ...]
) -> tuple[WorkerGroup, ...]:
    if isinstance(configured, WorkersSettings):
        return worker_groups(pool_named(pools, configured.pool, (*path, "pool")), configured, path)
    pool = pool_named(pools, configured.pool, (*path, "pool")) if configured.pool else None
    group = WorkerGroup(
        path=path,
        settings=configured,
        pool=pool,
        name=configured.group_name,
        gpus=configured.gpus,
        cpu=configured.cpu or (_cpu_share(pool, configured.gpus, Reserve()) if pool else None),
        memory=configured.memory or (_memory_share(pool, configured.gpus, Reserve()) if pool else None),
        replicas=configured.replicas,
        min_replicas=configured.min_replicas,
        max_replicas=configured.max_replicas,
        idle_timeout=configured.idle_timeout,
        pod_templates=_own_templates((path, configured.pod_template)),
    )
    raise_problems(_fit(group, None))
    return (group,)


def _cut(pool: NodePool, workers: WorkersSettings, variant: Variant, path: Path, place: Path) -> WorkerGroup:
    cpu = variant.cpu or _cpu_share(pool, variant.gpus, workers.reserve, workers.profile)
    memory = variant.memory or _memory_share(pool, variant.gpus, workers.reserve, workers.profile)
    most = variant.max_replicas
    if most is None and variant.gpus <= pool.gpus:
        most = _most_replicas(workers.profile, pool, variant.gpus)
        affordable = _within(workers.budget, variant.gpus, cpu, memory)
        most = most if affordable is None else min(most, affordable)
    return WorkerGroup(
        path=place,
        settings=workers,
        pool=pool,
        name=variant.name or f"{pool.pool}-{f'{variant.gpus}gpu' if variant.gpus else 'cpu'}",
        gpus=variant.gpus,
        cpu=cpu,
        memory=memory,
        replicas=0,
        min_replicas=variant.min_replicas,
        max_replicas=most,
        idle_timeout=variant.idle_timeout,
        whole_node=variant.gpus == pool.gpus > 0,
        pod_templates=_own_templates((path, workers.pod_template), (place, variant.pod_template)),
    )


def _own_templates(*templates: tuple[Path, dict[str, Any]]) -> tuple[tuple[Path, dict[str, Any]], ...]:
    return tuple(((*path, "podTemplate"), template) for path, template in templates if template)


def _fit(group: WorkerGroup, reserve: Path | None) -> Iterator[Problem]:
    if group.pool is None or group.cpu is None or group.memory is None:
        return
    if group.gpus and group.gpu_resource != group.pool.gpu_resource:
        message = (
            f"the GPUs of pool {group.pool.pool!r} are {group.pool.gpu_resource}: remove it, or name a pool with "
            f"{group.gpu_resource}"
        )
        yield Problem((*group.path, "gpuResource"), group.gpu_resource, message, "worker-fits-node")
        return
    yield from _does_not_fit(group.name, group.gpus, group.cpu, group.memory, group.pool, group.path, reserve)


def _names_used_twice(groups: list[WorkerGroup]) -> Iterator[Problem]:
    for path, name, _ in repeats((group.path, group.name) for group in groups):
        message = f"worker group name {name} is used twice: give each group a unique name"
        yield Problem(path, name, message, "group-name-used-twice")


def _numbers_of_no_group(settings: RayClusterSettings, groups: list[WorkerGroup]) -> Iterator[Problem]:
    """Numbers of workers that the cluster sets although it does not have exactly one group."""
    names = ", ".join(group.name for group in groups) or "none"
    for key, (of_cluster, of_group) in _NUMBERS.items():
        if (value := getattr(settings, of_cluster)) is None:
            continue
        if len(groups) != 1:
            message = (
                f"applies to the only worker group, and the cluster has {len(groups)} ({names}): set minReplicas, "
                "maxReplicas and replicas of each group"
            )
            yield Problem((key,), value, message, "workers-of-one-group")
        elif of_group in _settings_of(groups[0]).model_fields_set:
            message = f"worker group {names!r} already sets it: remove one of them"
            yield Problem((key,), value, message, "said-twice")


def _settings_of(group: WorkerGroup) -> WorkersSettings | WorkerGroupSettings | Variant:
    """The settings of this group alone."""
    variants = group.settings.variants if isinstance(group.settings, WorkersSettings) else None
    return variants[int(group.path[-1])] if variants else group.settings


def _with_numbers(settings: RayClusterSettings, group: WorkerGroup) -> WorkerGroup:
    numbers = {of_group: getattr(settings, of_cluster) for of_cluster, of_group in _NUMBERS.values()}
    return replace(group, **{field: value for field, value in numbers.items() if value is not None})


def _bounds(group: WorkerGroup) -> Iterator[Problem]:
    # The API server's 0 is raised to min_replicas, so it is within the bounds.
    return replica_bounds(group.path, (group.min_replicas, group.replicas or None, group.max_replicas))


_GI = Decimal(2**30)
_RESERVED_SHARE = Decimal(1) / 16
_MEMORY_RESERVED_BY_ADO = Decimal(1) / 5
"""ado's figures for nodes of 64 CPUs, 1000Gi and 8 GPUs are 8, 15, 30 and 60 CPUs and 100Gi for each GPU ("Deploying
Kuberay and creating a RayCluster"): CPUs less a sixteenth, rounded up, and memory less a fifth."""

_REPLICAS_OF_A_PART = 2
"""Two workers of one size use as many GPUs as one of the next, so a third is never needed (ado, "Best Practices for
Efficient GPU Resource Utilization")."""


def sizes(profile: Profile, gpus: int) -> tuple[int, ...]:
    """GPUs of each worker size on a node with that number of GPUs, smallest first. 0: one worker without GPUs."""
    return tiling(gpus) if profile == "tiling" else doubling(gpus)


def doubling(gpus: int) -> tuple[int, ...]:
    """Powers of two below the node's GPUs, and all its GPUs. 6: 1, 2, 4, 6. 0: 0."""
    if gpus == 0:
        return (0,)
    return (*(2**power for power in range((gpus - 1).bit_length())), gpus)


def tiling(gpus: int) -> tuple[int, ...]:
    """The divisors of the node's GPUs. 8: 1, 2, 4, 8. 6: 1, 2, 3, 6. 0: 0."""
    return tuple(size for size in range(1, gpus + 1) if gpus % size == 0) or (0,)


def _cpu_share(pool: NodePool, gpus: int, reserve: Reserve, profile: Profile = "doubling") -> str:
    """The share of a node's CPUs for that number of GPUs, in whole CPUs; without GPUs, all CPUs of the node."""
    rounding = ROUND_CEILING if profile == "ado" else ROUND_FLOOR
    return str(_share(pool.cpu, reserve.cpu, _RESERVED_SHARE, pool, gpus).to_integral_value(rounding))


def _memory_share(pool: NodePool, gpus: int, reserve: Reserve, profile: Profile = "doubling") -> str:
    """The share of a node's memory for that number of GPUs, in whole Gi; without GPUs, all memory of the node."""
    reserved = _MEMORY_RESERVED_BY_ADO if profile == "ado" else _RESERVED_SHARE
    return f"{_share(pool.memory, reserve.memory, reserved, pool, gpus) // _GI}Gi"


def _share(node: str, reserve: str | None, reserved: Decimal, pool: NodePool, gpus: int) -> Decimal:
    """`reserved`: share of the node that is left free if no reserve is set."""
    whole = amount(node)
    left = whole - (whole * reserved if reserve is None else amount(reserve))
    # Divided last: a third of 48, times three, is less than 48 in decimals.
    return left * gpus / pool.gpus if pool.gpus and gpus else left


def _most_replicas(profile: Profile, pool: NodePool, gpus: int) -> int:
    """The most workers of a size that a pool has by its profile."""
    if gpus == pool.gpus:
        return pool.count
    return pool.count * (pool.gpus // gpus if gpus else 1) if profile == "tiling" else _REPLICAS_OF_A_PART


def _within(budget: Budget, gpus: int, cpu: str, memory: str) -> int | None:
    """The most workers of a size that a budget allows; None if it does not limit their resources."""
    bounds = [(budget.gpus, Decimal(gpus)), (budget.cpu, amount(cpu)), (budget.memory, amount(memory))]
    return min((int(amount(str(most)) // each) for most, each in bounds if most is not None and each > 0), default=None)


def _does_not_fit(
    name: str, gpus: int, cpu: str, memory: str, pool: NodePool, path: Path, reserve: Path | None
) -> Iterator[Problem]:
    """Why a node of the pool cannot hold a worker of the group `name`.

    `path`: of the setting with its size. `reserve`: of the setting with the reserve; None if there is no such setting.
    """
    if gpus > pool.gpus:
        message = f"it has {gpus} gpus, and a node of pool {pool.pool!r} has {pool.gpus}: lower it"
        yield Problem((*path, "gpus"), gpus, message, "worker-fits-node")
        return
    for field, of_worker, of_node in (("cpu", cpu, pool.cpu), ("memory", memory, pool.memory)):
        if amount(of_worker) > amount(of_node):
            message = (
                f"worker group {name!r} has {field} {of_worker}, more than a node of pool {pool.pool!r} has "
                f"({of_node}): lower it"
            )
            yield Problem((*path, field), of_worker, message, "worker-fits-node")
        elif amount(of_worker) <= 0:
            advice = f"lower reserve.{field}, or set {field} in variants" if reserve else f"set {field}"
            message = (
                f"a node of pool {pool.pool!r} has {field} {of_node}, which leaves nothing for worker group {name!r}: "
                f"{advice}"
            )
            yield Problem((*reserve, field) if reserve else path, None, message, "worker-fits-node")
