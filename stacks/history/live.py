"""What was asked of the GPUs of a RayCluster that runs, as its own Ray knows it: a history of jobs.

A task or actor with GPUs is a job, and so is a bundle of a placement group; all bundles of a group that has to be on
one node are one. It waits from when it asked for its GPUs, which is when an autoscaler hears of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.cluster import ClusterUnreachableError
from components.rollout.pods import Pods, UnknownRayError

from .jobs import HistoryError, Job

_SCRIPT = Path(__file__).with_name("in_head.py")


@dataclass(frozen=True)
class Demand:
    """What Ray knew at one moment."""

    jobs: Mapping[str, Job]
    """By an id that no other job of any RayCluster has."""

    running: int = 0
    """Those of them that had not ended: as long as they had run."""

    waiting: int = 0
    """Left out, because they had not begun to run, so that nobody knows for how long they will."""

    shared: int = 0
    """Those that had asked for parts of a GPU, and count as whole ones."""

    def sentence(self, cluster: str) -> str:
        """What people have to know of it."""
        said = [f"Ray of {cluster} knows of {len(self.jobs)} tasks, actors and bundles with GPUs"]
        if self.running:
            said.append(f"{self.running} of them still run, and count for as long as they have run so far")
        if self.shared:
            said.append(f"{self.shared} ask for parts of GPUs, and count as whole ones")
        if self.waiting:
            said.append(f"{self.waiting} more wait for their GPUs, and are left out")
        return "; ".join(said) + "."


def demand(context: str | None, namespace: str, cluster: str) -> Demand:
    """What the Ray of a RayCluster says. `context`: of the kubeconfig. Raises HistoryError where it does not."""
    try:
        pods = Pods(context, namespace, cluster)
        return demand_of(pods.told(pods.all(), _SCRIPT.read_text()))
    except (UnknownRayError, ClusterUnreachableError) as error:
        raise HistoryError(f"RayCluster {namespace}/{cluster} cannot be asked for its history: {error}") from error


def demand_of(told: Mapping[str, Any]) -> Demand:
    """What in_head.py prints, as jobs."""
    there = [each for each in told["demands"] if each["started"]]
    return Demand(
        jobs={f"{told['cluster']}-{each['id']}": _job(each, told["now"]) for each in there},
        running=sum(each["ended"] is None for each in there),
        # What was cancelled before it began is neither.
        waiting=sum(each["started"] is None and each["ended"] is None for each in told["demands"]),
        shared=sum(each["gpus"] != int(each["gpus"]) for each in there),
    )


def _job(said: Mapping[str, Any], now: float) -> Job:
    return Job(math.ceil(said["gpus"]), max((said["ended"] or now) - said["started"], 0.0), said["asked"])
