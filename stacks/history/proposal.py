"""Chooses sizes, idle timeouts and caps for jobs that were, and says what they would have held."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .autoscaler import ModelledAutoscaler, Size
from .jobs import Job
from .replay import Played, play

IDLE_TIMEOUTS = (10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds that are tried. Ray looks every five, so that less is of no use."""

_SPARE = 1.5
"""Caps are so many times what was there at once."""

Sizes = Mapping[str, Size]
"""By the worker group's name."""


@dataclass(frozen=True)
class Outcome:
    """What jobs came to on workers of some sizes."""

    sizes: Sizes

    played: Played | None
    """None where none of the jobs can run."""

    @property
    def held(self) -> float:
        """GPU-hours of pods."""
        return self.played.held / 3600 if self.played else 0.0

    @property
    def p95(self) -> float:
        """Seconds that 95 of 100 jobs waited at most."""
        return self.played.p95 if self.played else 0.0

    @property
    def mean(self) -> float:
        """Seconds that jobs waited on average."""
        return statistics.mean(self.played.waits) if self.played else 0.0

    @property
    def infeasible(self) -> int:
        """Jobs that are greater than any worker."""
        return self.played.infeasible if self.played else 0


def outcome(sizes: Sizes, jobs: Sequence[Job], most_gpus: float) -> Outcome:
    """The jobs on workers of these sizes, on nodes with so many GPUs. Sizes of which there may be none are left out."""
    usable = {name: size for name, size in sizes.items() if size.gpus and size.most}
    able = bool(usable) and any(job.gpus <= max(size.gpus for size in usable.values()) for job in jobs)
    return Outcome(usable, play(ModelledAutoscaler(usable), jobs, most_gpus) if able else None)


def proposal(present: Outcome, candidates: Sequence[Sizes], jobs: Sequence[Job], most_gpus: float) -> Outcome:
    """The outcome that holds the fewest GPU-hours of those that run as many jobs, and let none of them wait longer.

    A candidate is tried with each idle timeout. That jobs do not wait longer is held to the 95th percentile. Caps of
    the proposal are half again as many workers as there were at once. It is the present one where none is better.
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
    """The most workers of a group that were there at once."""
    moments = [(worker.launched, 1) for worker in played.workers if worker.group == group]
    moments += [(worker.gone, -1) for worker in played.workers if worker.group == group]
    there = most = 0
    # One that goes makes room for one that comes in the same moment.
    for _, change in sorted(moments):
        there += change
        most = max(most, there)
    return most
