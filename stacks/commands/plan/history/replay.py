"""Replays jobs on a RayCluster: they wait, run on the fullest worker that has room, and workers start and end.

An autoscaler, Ray's own or a model of it, decides which workers are launched. It is called whenever a new job finds no
room, and when workers end while jobs wait; Ray's own loop runs every five seconds. While no job waits, a worker ends
once it was idle for longer than its timeout. Ray's scheduler does nothing else then.
"""

import heapq
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stacks.commands.plan.history.autoscaler import Decision, Running
from stacks.commands.plan.history.jobs import Job

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
    """The results of a replay."""

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
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

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
    greatest = max(autoscaler.gpus.values())
    fitting = [job for job in jobs if job.gpus <= greatest]
    beyond = [job for job in jobs if job.gpus > greatest]
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
