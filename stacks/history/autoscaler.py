"""A model of how Ray's autoscaler chooses workers for tasks that have a CPU for each of their GPUs.

As ray.autoscaler.v2.scheduler of Ray 2.60 has it: greedily, the greatest task first, on workers that are there before
new ones; each time the worker is taken whose score is best once it holds what it can. The score is the mean of v*u^3
over all resources that a worker has, v its amount and u the part that is used: the minimum, which goes before it, is
always 0, because no task asks for memory. The model is held against Ray's own code in a test.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Running:
    """A worker that runs or starts."""

    name: str
    group: str
    free_gpus: int
    idle: float = 0.0
    """Seconds without a task."""

    starting: bool = False


@dataclass(frozen=True)
class Decision:
    """What the autoscaler does."""

    launch: Mapping[str, int]
    """Workers by group."""

    terminate: tuple[str, ...]
    """Names of workers."""

    unmet: int
    """Tasks for which nothing is there, starts or may be launched."""


@dataclass(frozen=True)
class Size:
    """A worker group."""

    gpus: int
    cpus: int
    most: int
    """Workers at a time."""

    idle: float
    """Seconds."""

    others: int = 1
    """Resources that no task asks for: memory, GPUs by their product's name, `full-worker`."""

    def filled(self, free: int, tasks: Sequence[int]) -> tuple[float, list[int]]:
        """The score of a worker with so many free GPUs once it holds what it can, and the tasks that are left."""
        busy, left = self.gpus - free, []
        for task in tasks:
            if busy + task <= min(self.gpus, self.cpus):
                busy += task
            else:
                left.append(task)
        score = (self.gpus * (busy / self.gpus) ** 3 + self.cpus * (busy / self.cpus) ** 3) / (2 + self.others)
        return score, left


class ModelledAutoscaler:
    """The autoscaler of a RayCluster of these sizes."""

    def __init__(self, sizes: Mapping[str, Size]) -> None:
        """`sizes`: by the group's name, in the RayCluster's order."""
        self._sizes = sizes
        self.gpus: Mapping[str, int] = {name: size.gpus for name, size in sizes.items()}
        self.idle: Mapping[str, float] = {name: size.idle for name, size in sizes.items()}

    def decide(self, tasks: Iterable[int], running: Iterable[Running]) -> Decision:
        """What it does for tasks of so many GPUs each that wait, beside all workers that there are."""
        there = list(running)
        waiting = sorted(tasks, reverse=True)
        nodes = [(worker.group, worker.free_gpus) for worker in there]
        while waiting and (best := self._best(nodes, waiting)) is not None:
            nodes.pop(best[0])
            waiting = best[1]
        numbers = Counter(worker.group for worker in there)
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
        """Index of the node to take, and the tasks that it leaves; None where none holds any."""
        found: tuple[int, list[int]] | None = None
        highest = -1.0
        for index, (group, free) in enumerate(nodes):
            score, left = self._sizes[group].filled(free, waiting)
            if len(left) < len(waiting) and score > highest:
                highest, found = score, (index, left)
        return found
