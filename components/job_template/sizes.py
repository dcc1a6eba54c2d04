"""Sizes of the runs of a job template: what each changes of the template's own cluster."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from components.ray_cluster.settings import Budget, ClusterTemplateSettings, WorkerGroupSettings, one_or_more
from core.nodes import PoolName
from core.problems import Path, Problem, few, repeats
from core.types import MOST_PODS, DnsLabel, Gpus, Memory, NotEmpty, Quantity, Replicas, Settings

_SHOWN = 5
"""How many names a message has."""


class GroupSizeSettings(Settings):
    """A worker group of the template's `cluster` in this size. The cluster has the values that are not set here."""

    group_name: DnsLabel
    """Name of the worker group, one of `cluster.workerGroups`."""

    replicas: Replicas | None = None
    """Initial workers; without autoscaling the constant number."""

    min_replicas: Replicas | None = None
    """Workers that are never scaled down."""

    max_replicas: Replicas | None = None
    """Most workers at a time."""

    num_of_hosts: Annotated[int, Strict(), Field(ge=1, le=MOST_PODS)] | None = None
    """Pods of one worker, for accelerators that span hosts."""

    cpu: Quantity | None = None
    """CPUs of a worker."""

    memory: Memory | None = None
    """Memory of a worker."""

    gpus: Gpus | None = None
    """GPUs of a worker."""


class WorkersSizeSettings(Settings):
    """Workers of a pool of the template's `cluster` in this size."""

    pool: PoolName
    """Name of the pool, one of `cluster.workers`."""

    budget: Budget
    """The maximum for all workers of one size together. Amounts that are not set are those of `cluster`."""


class SizeSettings(Settings):
    """A size of a run: its worker groups or pools with other counts and resources. All else is the template's."""

    worker_groups: Annotated[tuple[GroupSizeSettings, ...], NotEmpty] = Field(default=(), validate_default=False)
    """Worker groups with other counts or resources."""

    workers: Annotated[
        tuple[WorkersSizeSettings, ...],
        NotEmpty,
        BeforeValidator(one_or_more, json_schema_input_type=WorkersSizeSettings | tuple[WorkersSizeSettings, ...]),
    ] = Field(default=(), validate_default=False)
    """Workers of one pool with another budget, or a list for several pools."""


def with_size(cluster: ClusterTemplateSettings, size: SizeSettings) -> ClusterTemplateSettings:
    """The cluster of a run of this size."""
    groups = {each.group_name: _given(each) for each in size.worker_groups}
    pools = {each.pool: each.budget for each in size.workers}
    return cluster.model_copy(
        update={
            "worker_groups": tuple(
                each.model_copy(update=groups[each.group_name]) if each.group_name in groups else each
                for each in cluster.worker_groups
            ),
            "workers": tuple(
                each.model_copy(update={"budget": each.budget.model_copy(update=_given(pools[each.pool]))})
                if each.pool in pools
                else each
                for each in cluster.workers
            ),
        }
    )


def _given(part: Settings) -> dict[str, object]:
    values = {field: getattr(part, field) for field in part.model_fields_set}
    return {field: value for field, value in values.items() if value is not None}


def problems_of_size(cluster: ClusterTemplateSettings, size: SizeSettings) -> Iterator[Problem]:
    """Worker groups and pools that the cluster does not have, or that the size names twice; paths in the size."""
    if not (size.worker_groups or size.workers):
        message = "changes nothing: set workerGroups or workers, with other counts or resources, or remove the size"
        yield Problem((), None, message, "job-template-size")
    named: tuple[tuple[str, str, str, list[str], list[str]], ...] = (
        (
            "workerGroups",
            "groupName",
            "worker group",
            [each.group_name for each in size.worker_groups],
            [each.group_name for each in cluster.worker_groups],
        ),
        ("workers", "pool", "pool", [each.pool for each in size.workers], [each.pool for each in cluster.workers]),
    )
    for key, field, title, names, known in named:
        placed: list[tuple[Path, str]] = [((key, at, field), name) for at, name in enumerate(names)]
        for path, name in placed:
            if name not in known:
                has = f"use {few(known, _SHOWN)}" if known else f"it has none in {key}"
                message = f"the template's cluster has no {title} {name!r}: {has}, or add it to cluster.{key}"
                yield Problem(path, name, message, "job-template-size")
        for path, name, _ in repeats(placed):
            yield Problem(path, name, f"{title} {name!r} is named twice: write one entry for it", "job-template-size")


def problems_of_groups(cluster: ClusterTemplateSettings) -> Iterator[Problem]:
    """Rules of worker groups by themselves, which `model_copy` does not apply; paths in a job's settings."""
    for at, group in enumerate(cluster.worker_groups):
        yield from (each.below(("cluster", "workerGroups", at)) for each in WorkerGroupSettings.problems(group))


def in_size(cluster: ClusterTemplateSettings, size: SizeSettings, path: Path) -> Path:
    """The place in a size of a setting of its run; `()` if the size does not set it. `path`: in the job's settings."""
    match path:
        case ("cluster", "workerGroups", int(number), str(key), *_):
            names = [each.group_name for each in size.worker_groups]
            name = cluster.worker_groups[number].group_name
            at = names.index(name) if name in names else None
            if at is not None and key in size.worker_groups[at].model_dump(by_alias=True, exclude_unset=True):
                return ("workerGroups", at, key)
        case ("cluster", "workers", int(number), *_):
            pools, pool = [each.pool for each in size.workers], cluster.workers[number].pool
            if pool in pools:
                return ("workers", pools.index(pool))
    return ()
