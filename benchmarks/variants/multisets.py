"""Launches of Ray for tasks that arrive together, without running workers."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.variants.clusters import ray_cluster
from benchmarks.variants.ray_scheduler import RaysAutoscaler

MOST = 16
"""Maximum GPUs of all tasks together."""

_NODES = 8


def multisets(sizes: Sequence[int], most: int = MOST) -> Iterator[tuple[int, ...]]:
    """All non-empty multisets of sizes with a sum of at most `most`; each has its largest size first."""
    for at, size in enumerate(sizes):
        if size <= most:
            yield (size,)
            yield from ((size, *rest) for rest in multisets(sizes[at:], most - size))


def exact(workers: dict[str, Any], sizes: Sequence[int]) -> float:
    """The share of multisets for which Ray launches exactly as many GPUs as the tasks need."""
    autoscaler = RaysAutoscaler(ray_cluster(workers, _NODES))
    all_tasks = list(multisets(sorted(sizes, reverse=True)))
    return sum(_launched(autoscaler, tasks) == sum(tasks) for tasks in all_tasks) / len(all_tasks)


def _launched(autoscaler: RaysAutoscaler, tasks: Sequence[int]) -> int:
    return sum(autoscaler.gpus[group] * number for group, number in autoscaler.decide(tasks, ()).launch.items())
