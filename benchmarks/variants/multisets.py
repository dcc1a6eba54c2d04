"""What Ray launches for tasks that come together, where nothing runs yet."""

from collections.abc import Iterator, Sequence
from typing import Any

from .clusters import ray_cluster
from .ray_scheduler import RaysAutoscaler

MOST = 16
"""GPUs of all tasks together."""

_NODES = 8


def multisets(sizes: Sequence[int], most: int = MOST) -> Iterator[tuple[int, ...]]:
    """All multisets of sizes, none empty, that are at most so many together; each greatest first."""
    for at, size in enumerate(sizes):
        if size <= most:
            yield (size,)
            yield from ((size, *rest) for rest in multisets(sizes[at:], most - size))


def exact(workers: dict[str, Any], sizes: Sequence[int]) -> float:
    """The share of multisets for which as many GPUs are launched as are wanted."""
    autoscaler = RaysAutoscaler(ray_cluster(workers, _NODES))
    wanted = list(multisets(sorted(sizes, reverse=True)))
    return sum(_launched(autoscaler, tasks) == sum(tasks) for tasks in wanted) / len(wanted)


def _launched(autoscaler: RaysAutoscaler, tasks: Sequence[int]) -> int:
    return sum(autoscaler.gpus[group] * number for group, number in autoscaler.decide(tasks, ()).launch.items())
