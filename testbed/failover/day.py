"""The record of a run in which Redis masters fail while Ray works."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Loss:
    """The loss of a master.

    Fields: `kind`: how; `at`: when, in seconds since 1970; `whole`: seconds until there were three nodes again.
    """

    kind: str
    at: float
    whole: float


@dataclass(frozen=True)
class Day:
    """Fields: `noticed`: the driver's report (tests/gateway/ray_load.py); `before`, `after`: Ray's containers and their
    restart counts, by pod; `gateway`: the counters of the gateway beside the head."""

    losses: list[Loss]
    noticed: Mapping[str, Any]
    before: Mapping[str, dict[str, int]]
    after: Mapping[str, dict[str, int]]
    gateway: Mapping[str, float]

    def stall(self, work: str, loss: Loss) -> float:
        """The longest duration of one operation of a kind of work during a loss; 0 if none took a second."""
        stalls = self.noticed[work]["stalls"]
        return max((seconds for at, seconds in stalls if loss.at - seconds <= at <= loss.at + loss.whole), default=0.0)

    def table(self) -> str:
        """Each loss with its times, and the usual values."""
        stalls = {work: [self.stall(work, loss) for loss in self.losses] for work in ("keys", "actors")}
        lines = ["lost       write stalls  actor takes  whole again"]
        lines += [
            f"{loss.kind:<9} {key:>13.1f} {actor:>12.1f} {loss.whole:>12.1f}"
            for loss, key, actor in zip(self.losses, stalls["keys"], stalls["actors"], strict=True)
        ]
        for work, of in stalls.items():
            usual = statistics.median(of)
            most = statistics.quantiles(of, n=20, method="inclusive")[-1] if len(of) > 1 else usual
            lines.append(f"{work}, {len(of)} losses: median {usual:.1f}, p95 {most:.1f}, longest {max(of):.1f}")
        return "\n".join(lines)


LOSSES = pytest.StashKey[str]()
"""The table of a run, printed at the end of the tests."""
