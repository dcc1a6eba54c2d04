"""Compares a RayCluster's worker groups with better ones for past jobs, as a report."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from components.ray_cluster.manifests import custom_resources, idle_seconds
from components.ray_cluster.settings import RayClusterSettings, Variant, WorkersSettings
from components.ray_cluster.worker_groups import WorkerGroup, all_groups, pool_named, tiling, worker_groups
from core.nodes import NodePool
from core.problems import Problems
from core.quantities import amount
from core.types import seconds
from stacks.commands.plan.history.jobs import Job
from stacks.commands.plan.history.replay import Outcome, Size, Sizes, outcome, proposal
from stacks.commands.plan.report import NONE, Report, Table
from stacks.objects.ray_clusters import with_tenant_defaults
from stacks.settings import StackSettings

Own = Mapping[int, Mapping[str, Any]]
"""`cpu` and `memory` of the sizes for which the stack file sets them, by their GPUs."""


class NoSuchClusterError(Exception):
    """The stack does not have exactly one RayCluster of that name with workers cut from a pool."""


@dataclass(frozen=True)
class Comparison:
    """A RayCluster with its present and its proposed workers."""

    cluster: str
    """`<namespace>/<name>`."""

    pool: NodePool
    jobs: tuple[Job, ...]
    present: Outcome
    proposed: Outcome

    own: Own
    """Values that the stack file sets itself, and keeps."""

    notes: tuple[str, ...] = ()
    """Notes on the jobs, a sentence each."""

    @property
    def used(self) -> float:
        """GPU-hours of all jobs: the lower bound for any workers."""
        return sum(job.gpus * job.duration for job in self.jobs) / 3600


def chosen(stack: StackSettings, name: str | None) -> str:
    """`<namespace>/<name>` of the RayCluster whose workers are compared.

    `name`: as the user gave it; None for the only one. Raises NoSuchClusterError.
    """
    clusters = _comparable(stack)
    if name is None and len(clusters) == 1:
        name = next(iter(clusters))
    if name not in clusters:
        known = ", ".join(clusters) or "none"
        raise NoSuchClusterError(
            f"{'no RayCluster is named' if name is None else f'there is no RayCluster {name!r}'} whose workers are cut "
            f"from one pool and scale: set --cluster to one of these: {known}"
        )
    return name


def compare(stack: StackSettings, name: str, jobs: Sequence[Job], notes: tuple[str, ...] = ()) -> Comparison:
    """The workers of a RayCluster and better ones of the same pool. `name`: a result of `chosen`."""
    cluster = _comparable(stack)[name]
    workers = cluster.workers[0]
    pool = pool_named(stack.nodes, workers.pool, ("workers", 0, "pool"))
    most = pool.count * pool.gpus
    present = outcome(_sizes(cluster, all_groups(cluster, stack.nodes)), jobs, most)
    own = {each.gpus: each.model_dump(include={"cpu", "memory"}, exclude_none=True) for each in workers.variants or ()}
    candidates = []
    for sizes in {tiling(pool.gpus), tuple(range(1, pool.gpus + 1))}:
        # Skips sizes whose share of a node's CPUs or memory is too small.
        with suppress(Problems):
            candidates.append(_sizes(cluster, worker_groups(pool, _cut(workers, sizes, own))))
    return Comparison(name, pool, tuple(jobs), present, proposal(present, candidates, jobs, most), own, notes)


def _comparable(stack: StackSettings) -> dict[str, RayClusterSettings]:
    """The RayClusters with autoscaling whose workers are cut from one pool, by `<namespace>/<name>`."""
    return {
        f"{tenant.namespace_name}/{cluster.name}": with_tenant_defaults(tenant, cluster)
        for tenant in stack.tenants
        for cluster in tenant.clusters
        if len(cluster.workers) == 1 and cluster.scales
    }


def _cut(workers: WorkersSettings, sizes: Sequence[int], own: Own) -> WorkersSettings:
    variants = tuple(Variant(gpus=gpus, **own.get(gpus, {})) for gpus in sizes if gpus)
    return workers.model_copy(update={"profile": "tiling", "variants": variants or None})


def _sizes(cluster: RayClusterSettings, groups: Sequence[WorkerGroup]) -> Sizes:
    return {
        group.name: Size(
            gpus=group.gpus,
            # Tasks on workers with fewer CPUs than GPUs request fewer CPUs, too.
            cpus=max(int(amount(group.cpu)) if group.cpu else 0, group.gpus),
            most=10**6 if group.max_replicas is None else group.max_replicas,
            idle=float(seconds(group.idle_timeout) if group.idle_timeout else idle_seconds(cluster)),
            others=1 + len(custom_resources(group)),
        )
        for group in groups
    }


def report(there: Comparison) -> Report:
    """The comparison for people, with the variants to write into the stack file."""
    rows = [
        ("as it is", *_figures(there.present, there.used)),
        ("proposed", *_figures(there.proposed, there.used)),
        ("used by jobs", f"{there.used:.1f}", "1.00", *[NONE] * 4),
    ]
    columns = ("Workers", "GPU-hours", "of those used", "Mean wait", "p95 wait", "Launched", "Jobs too great")
    table = Table(f"{len(there.jobs)} jobs on {there.cluster}, whose pods take 60 s to start", columns, tuple(rows))
    if there.proposed is there.present:
        nothing = "No other workers need fewer GPU-hours without longer waits: keep the present ones."
        return Report(there.cluster, (table,), (*there.notes, nothing))
    advice = f"To get the proposed workers, set workers of {there.cluster} to:"
    return Report(there.cluster, (table,), (*there.notes, advice), text=_yaml(there))


def variants(sizes: Sizes, own: Own) -> list[dict[str, Any]]:
    """The sizes as `variants` of a stack file."""
    return [
        {"gpus": size.gpus, **own.get(size.gpus, {}), "maxReplicas": size.most, "idleTimeout": f"{size.idle:.0f}s"}
        for size in sizes.values()
    ]


def as_object(comparison: Comparison) -> dict[str, object]:
    return {
        "cluster": comparison.cluster,
        "jobs": len(comparison.jobs),
        "notes": list(comparison.notes),
        "usedGpuHours": comparison.used,
        "present": _outcome_object(comparison.present, comparison.own),
        "proposed": _outcome_object(comparison.proposed, comparison.own),
    }


def _yaml(there: Comparison) -> str:
    lines = ["workers:", f"  pool: {there.pool.pool}", "  profile: tiling", "  variants:"]
    for each in variants(there.proposed.sizes, there.own):
        lines.append(f"    - {{{', '.join(f'{key}: {value}' for key, value in each.items())}}}")
    return "\n".join(lines)


def _outcome_object(each: Outcome, own: Own) -> Mapping[str, object]:
    return {
        "gpuHours": each.held,
        "meanWaitSeconds": each.mean,
        "p95WaitSeconds": each.p95,
        "launched": len(each.played.workers) if each.played else 0,
        "tooGreat": each.infeasible,
        "variants": variants(each.sizes, own),
    }


def _figures(each: Outcome, used: float) -> tuple[str, ...]:
    if each.played is None:
        return (NONE,) * 5 + ("all",)
    ran = each.played.used / 3600
    return (
        f"{each.held:.1f}",
        f"{each.held / ran:.2f}" if ran else NONE,
        f"{each.mean:.0f} s",
        f"{each.p95:.0f} s",
        str(len(each.played.workers)),
        str(each.infeasible),
    )
