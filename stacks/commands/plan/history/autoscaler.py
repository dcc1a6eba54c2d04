"""A model of how Ray's autoscaler chooses workers for tasks that need a CPU for each of their GPUs.

Follows ray.autoscaler.v2.scheduler of Ray 2.60: greedily, the largest task first, on existing workers before new ones.
Each step takes the worker with the best score after it gets all the tasks that fit. The score is the mean of v*u^3 over
all resources of a worker, v its amount and u the used fraction. The minimum, which Ray compares first, is always 0,
because no task requests memory. A test compares the model with Ray's own code.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Running:
    """A running or starting worker."""

    name: str
    group: str
    free_gpus: int
    idle: float = 0.0
    """Seconds without a task."""

    starting: bool = False


@dataclass(frozen=True)
class Decision:
    """The autoscaler's decision."""

    launch: Mapping[str, int]
    """Number of workers by group."""

    terminate: tuple[str, ...]
    """Names of workers."""

    unmet: int
    """Tasks that fit no existing, starting or allowed new worker."""


@dataclass(frozen=True)
class Size:
    """A worker group."""

    gpus: int
    cpus: int
    most: int
    """The largest number of workers at a time."""

    idle: float
    """Seconds."""

    others: int = 1
    """Number of resources that no task requests: memory, GPUs by their product's name, `full-worker`."""

    def filled(self, free: int, tasks: Sequence[int]) -> tuple[float, list[int]]:
        """The score of a worker with `free` free GPUs after it gets all the tasks that fit, and the remaining tasks."""
        busy, left = self.gpus - free, []
        for task in tasks:
            if busy + task <= min(self.gpus, self.cpus):
                busy += task
            else:
                left.append(task)
        score = (self.gpus * (busy / self.gpus) ** 3 + self.cpus * (busy / self.cpus) ** 3) / (2 + self.others)
        return score, left


class ModelledAutoscaler:
    """The autoscaler of a RayCluster with these sizes."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        """`sizes`: by the group's name, in the RayCluster's order."""
        self._sizes = sizes
        self.gpus: Mapping[str, int] = {name: size.gpus for name, size in sizes.items()}
        self.idle: Mapping[str, float] = {name: size.idle for name, size in sizes.items()}

    def decide(self, tasks: Iterable[int], running: Iterable[Running]) -> Decision:
        """The decision for waiting tasks of these numbers of GPUs, with all existing workers."""
        workers = list(running)
        waiting = sorted(tasks, reverse=True)
        nodes = [(worker.group, worker.free_gpus) for worker in workers]
        while waiting and (best := self._best(nodes, waiting)) is not None:
            nodes.pop(best[0])
            waiting = best[1]
        numbers = Counter(worker.group for worker in workers)
        room = {name: size.most - numbers[name] for name, size in self._sizes.items()}
        fresh = [(name, self.gpus[name]) for name, most in room.items() if most > 0]
        launch: Counter[str] = Counter()
        while waiting and (best := self._best(fresh, waiting)) is not None:
            group, gpus = fresh.pop(best[0])
            launch[group] += 1
            if launch[group] < room[group]:
                fresh.append((group, gpus))
            waiting = best[1]
        return Decision(dict(launch), (), len(waiting))

    def _best(self, nodes: Sequence[tuple[str, int]], waiting: Sequence[int]) -> tuple[int, list[int]] | None:
        """Index of the best node, and the tasks that do not fit on it; None if no task fits any node."""
        found: tuple[int, list[int]] | None = None
        highest = -1.0
        for index, (group, free) in enumerate(nodes):
            score, left = self._sizes[group].filled(free, waiting)
            if len(left) < len(waiting) and score > highest:
                highest, found = score, (index, left)
        return found
