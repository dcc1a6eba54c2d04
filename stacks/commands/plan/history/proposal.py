"""Chooses sizes, idle timeouts and caps for past jobs, and computes the GPU-hours that they would have held."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from stacks.commands.plan.history.autoscaler import ModelledAutoscaler, Size
from stacks.commands.plan.history.jobs import Job
from stacks.commands.plan.history.replay import Played, play

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
