"""The worker groups of a cluster: those derived from its pools, and those of `workerGroups`. Pure functions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from components.ray_cluster.node_settings import Reserve, Variant, WorkerGroupSettings, WorkersSettings
from components.ray_cluster.rules import replica_bounds
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.sizes import cpu_share, does_not_fit, memory_share, most_replicas, sizes, within
from core.nodes import NodePool
from core.problems import Path, Problem, Problems, raise_problems

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
        cpu=configured.cpu or (cpu_share(pool, configured.gpus, Reserve()) if pool else None),
        memory=configured.memory or (memory_share(pool, configured.gpus, Reserve()) if pool else None),
        replicas=configured.replicas,
        min_replicas=configured.min_replicas,
        max_replicas=configured.max_replicas,
        idle_timeout=configured.idle_timeout,
        pod_templates=_own_templates((path, configured.pod_template)),
    )
    raise_problems(_fit(group, None))
    return (group,)


def _cut(pool: NodePool, workers: WorkersSettings, variant: Variant, path: Path, place: Path) -> WorkerGroup:
    cpu = variant.cpu or cpu_share(pool, variant.gpus, workers.reserve, workers.profile)
    memory = variant.memory or memory_share(pool, variant.gpus, workers.reserve, workers.profile)
    most = variant.max_replicas
    if most is None and variant.gpus <= pool.gpus:
        most = most_replicas(workers.profile, pool, variant.gpus)
        affordable = within(workers.budget, variant.gpus, cpu, memory)
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
        return iter(())
    return does_not_fit(group.name, group.gpus, group.cpu, group.memory, group.pool, group.path, reserve)


def _names_used_twice(groups: list[WorkerGroup]) -> Iterator[Problem]:
    seen: set[str] = set()
    for group in groups:
        if group.name in seen:
            message = f"worker group name {group.name} is used twice: give each group its own name"
            yield Problem(group.path, group.name, message, "group-name-used-twice")
        seen.add(group.name)


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
