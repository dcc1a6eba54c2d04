"""Replays jobs on a RayCluster: they wait, run on the fullest worker that has room, and workers start and end. Chooses
sizes, idle timeouts and caps for past jobs, and computes the GPU-hours that they would have held.

An autoscaler, Ray's own or the model of it, decides which workers are launched. It is called whenever a new job finds
no room, and when workers end while jobs wait; Ray's own loop runs every five seconds. While no job waits, a worker ends
once it was idle for longer than its timeout. Ray's scheduler does nothing else then.
"""

from __future__ import annotations

import heapq
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from stacks.commands.plan.history.jobs import Job


@dataclass(frozen=True)
class Running:
    name: str
    group: str
    free_gpus: int
    idle: float = 0.0
    """Seconds without a task."""

    starting: bool = False


@dataclass(frozen=True)
class Decision:
    launch: Mapping[str, int]
    """Number of workers by group."""

    terminate: tuple[str, ...]
    """Names of workers."""

    unmet: int
    """Tasks that fit no existing, starting or allowed new worker."""


@dataclass(frozen=True)
class Size:
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
    """A model of how Ray's autoscaler chooses workers of these sizes for tasks that need a CPU for each of their GPUs.

    Follows ray.autoscaler.v2.scheduler of Ray 2.60: greedily, the largest task first, on existing workers before new
    ones. Each step takes the worker with the best score after it gets all the tasks that fit. The score is the mean of
    v*u^3 over all resources of a worker, v its amount and u the used fraction. The minimum, which Ray compares first,
    is always 0, because no task requests memory. A test compares the model with Ray's own code.
    """

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


START = 60.0
"""Seconds from a pod's launch to its first task."""


class Autoscaler(Protocol):
    """Decides which workers are launched and ended."""

    @property
    def gpus(self) -> Mapping[str, int]:
        """GPUs of a worker, by worker group."""

    @property
    def idle(self) -> Mapping[str, float]:
        """Idle timeout in seconds, by worker group."""

    def decide(self, tasks: Iterable[int], running: Iterable[Running]) -> Decision:
        """The decision for waiting tasks of these numbers of GPUs, with all existing workers."""


@dataclass
class Worker:
    """A pod. Times are in seconds."""

    name: str
    group: str
    gpus: int
    launched: float
    """When a node had room for it; infinite while no node has."""

    free: int = 0
    idle_since: float = math.inf
    """Since when it is idle; infinite while it is busy or starting."""

    starting: bool = True
    gone: float = math.inf


@dataclass
class Played:
    workers: list[Worker]
    waits: list[float]
    used: float = 0.0
    """GPU-seconds of the jobs that ran."""

    infeasible: int = 0
    """Jobs that are larger than any worker. They do not run, and are in no other figure."""

    infeasible_used: float = 0.0

    @property
    def held(self) -> float:
        """GPU-seconds of pods, from their launch."""
        return sum(worker.gpus * (worker.gone - worker.launched) for worker in self.workers)

    @property
    def p95(self) -> float:
        """The longest wait of 95 of 100 jobs, in seconds."""
        return sorted(self.waits)[math.ceil(0.95 * len(self.waits)) - 1]


@dataclass
class _Replay:
    autoscaler: Autoscaler
    room: float
    """GPUs of nodes that no pod uses."""

    pending: list[Worker] = field(default_factory=list)
    """Pods that fit on no node, the oldest first."""

    there: dict[str, Worker] = field(default_factory=dict)
    all: list[Worker] = field(default_factory=list)
    waiting: list[Job] = field(default_factory=list)
    events: list[tuple[float, int, str, object]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    unmet: bool = False
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def at(self, when: float, what: str, about: object) -> None:
        heapq.heappush(self.events, (when, next(self.numbers), what, about))

    def run(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.at(job.arrival, "arrives", job)
        while self.events:
            now = self.events[0][0]
            came = went = False
            while self.events and self.events[0][0] == now:
                _, _, what, about = heapq.heappop(self.events)
                came |= what == "arrives"
                went |= self.happens(now, what, about)
            self.place(now)
            if self.waiting and (came or (went and self.unmet)):
                self.ask(now)

    def happens(self, now: float, what: str, about: object) -> bool:
        """Handles an event. Returns whether a worker has ended."""
        if isinstance(about, Job):
            self.waiting.append(about)
        elif isinstance(about, Worker):
            if what == "is ready":
                about.starting, about.free = False, about.gpus
                self.becomes_idle(now, about)
            elif what == "may end" and about.gone == math.inf and now >= about.idle_since + self.timeout(about):
                self.ends(now, about)
                return True
        elif isinstance(about, tuple):
            worker, gpus = about
            worker.free += gpus
            if worker.free == worker.gpus:
                self.becomes_idle(now, worker)
        return False

    def becomes_idle(self, now: float, worker: Worker) -> None:
        worker.idle_since = now
        self.at(now + self.timeout(worker), "may end", worker)

    def timeout(self, worker: Worker) -> float:
        return self.autoscaler.idle[worker.group]

    def ends(self, now: float, worker: Worker) -> None:
        worker.gone = now
        self.room += worker.gpus
        del self.there[worker.name]
        self.start(now)

    def start(self, now: float) -> None:
        """Starts the pods that fit."""
        for worker in [each for each in self.pending if each.gpus <= self.room]:
            if worker.gpus <= self.room:
                self.room -= worker.gpus
                self.pending.remove(worker)
                worker.launched = now
                self.at(now + START, "is ready", worker)

    def place(self, now: float) -> None:
        left = []
        for job in self.waiting:
            fitting = [each for each in self.there.values() if each.free >= job.gpus]
            if not fitting:
                left.append(job)
                continue
            worker = min(fitting, key=lambda each: each.free)
            worker.free -= job.gpus
            worker.idle_since = math.inf
            self.waits.append(now - job.arrival)
            self.at(now + job.duration, "ends", (worker, job.gpus))
        self.waiting = left

    def ask(self, now: float) -> None:
        running = [
            Running(
                each.name,
                each.group,
                each.gpus if each.starting else each.free,
                max(0.0, now - each.idle_since),
                each.starting,
            )
            for each in self.there.values()
        ]
        decision = self.autoscaler.decide([job.gpus for job in self.waiting], running)
        for name in decision.terminate:
            self.ends(now, self.there[name])
        for group, number in decision.launch.items():
            for _ in range(number):
                worker = Worker(f"w{next(self.numbers)}", group, self.autoscaler.gpus[group], math.inf)
                self.there[worker.name] = worker
                self.all.append(worker)
                self.pending.append(worker)
        self.start(now)
        self.unmet = decision.unmet > 0


def play(autoscaler: Autoscaler, jobs: Sequence[Job], most_gpus: float = math.inf) -> Played:
    """Replays the jobs on the RayCluster, until the last worker has ended.

    `most_gpus`: of all nodes together, as if pods were packed without gaps. A pod beyond them holds nothing until there
    is room; Ray does not know this limit.
    """
    maximum = max(autoscaler.gpus.values())
    fitting = [job for job in jobs if job.gpus <= maximum]
    beyond = [job for job in jobs if job.gpus > maximum]
    replay = _Replay(autoscaler, most_gpus)
    replay.run(fitting)
    assert not replay.waiting, f"{len(replay.waiting)} jobs never ran"
    return Played(
        workers=replay.all,
        waits=replay.waits,
        used=sum(job.gpus * job.duration for job in fitting),
        infeasible=len(beyond),
        infeasible_used=sum(job.gpus * job.duration for job in beyond),
    )


IDLE_TIMEOUTS = (10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds to try. Ray checks every five seconds, so smaller values are useless."""

_SPARE = 1.5
"""Caps are this factor times the largest number of workers at once."""

Sizes = Mapping[str, Size]
"""By the worker group's name."""


@dataclass(frozen=True)
class Outcome:
    """The result of jobs on workers of some sizes."""

    sizes: Sizes

    played: Played | None
    """None if none of the jobs can run."""

    @property
    def held(self) -> float:
        """GPU-hours of pods."""
        return self.played.held / 3600 if self.played else 0.0

    @property
    def p95(self) -> float:
        """The longest wait of 95 of 100 jobs, in seconds."""
        return self.played.p95 if self.played else 0.0

    @property
    def mean(self) -> float:
        """The mean wait of jobs, in seconds."""
        return statistics.mean(self.played.waits) if self.played else 0.0

    @property
    def infeasible(self) -> int:
        """Jobs that are larger than any worker."""
        return self.played.infeasible if self.played else 0


def outcome(sizes: Sizes, jobs: Sequence[Job], most_gpus: float) -> Outcome:
    """Replays the jobs on workers of these sizes, on nodes with `most_gpus` GPUs. Sizes with a maximum of 0 are
    skipped."""
    usable = {name: size for name, size in sizes.items() if size.gpus and size.most}
    able = bool(usable) and any(job.gpus <= max(size.gpus for size in usable.values()) for job in jobs)
    return Outcome(usable, play(ModelledAutoscaler(usable), jobs, most_gpus) if able else None)


def proposal(present: Outcome, candidates: Sequence[Sizes], jobs: Sequence[Job], most_gpus: float) -> Outcome:
    """The outcome with the fewest GPU-hours among those that run as many jobs without longer waits.

    Each candidate is tried with each idle timeout. The 95th percentile of the waits must not grow. The caps of the
    proposal are one and a half times the largest number of workers at once. Returns the present outcome if none is
    better.
    """
    found = [outcome(sizes, jobs, most_gpus) for sizes in _with_timeouts(candidates)]
    better = [
        each
        for each in found
        if each.played and each.infeasible <= present.infeasible and (not present.played or each.p95 <= present.p95)
    ]
    best = min(better, key=lambda each: each.held, default=present)
    if present.played and present.held <= best.held:
        return present
    return Outcome(_capped(best), best.played)


def _with_timeouts(candidates: Sequence[Sizes]) -> Iterator[Sizes]:
    for sizes in candidates:
        for idle in IDLE_TIMEOUTS:
            yield {name: replace(size, idle=idle) for name, size in sizes.items()}


def _capped(best: Outcome) -> Sizes:
    assert best.played
    return {
        name: replace(size, most=min(size.most, math.ceil(_SPARE * at_once(best.played, name))))
        for name, size in best.sizes.items()
        if at_once(best.played, name)
    }


def at_once(played: Played, group: str) -> int:
    """The largest number of workers of a group that existed at once."""
    moments = [(worker.launched, 1) for worker in played.workers if worker.group == group]
    moments += [(worker.gone, -1) for worker in played.workers if worker.group == group]
    existing = most = 0
    # A worker that ends makes room for one that starts at the same moment.
    for _, change in sorted(moments):
        existing += change
        most = max(most, existing)
    return most
