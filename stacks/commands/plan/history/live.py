"""The GPU demand of a live RayCluster, from its own Ray, as a history of jobs.

A task or actor with GPUs is a job, and so is a bundle of a placement group. All bundles of a group that must be on one
node are one job. A job waits from the time of its GPU request, which is when an autoscaler learns of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components import payloads
from components.cluster import Cluster, ClusterUnreachableError
from components.rollout.pods import Pods, UnknownRayError
from stacks.commands.plan.history.jobs import HistoryError, Job


@dataclass(frozen=True)
class Demand:
    """The demand that Ray reported at one moment."""

    jobs: Mapping[str, Job]
    """By an id that is unique among the jobs of all RayClusters."""

    running: int = 0
    """Jobs that have not ended: they count for as long as they have run."""

    waiting: int = 0
    """Skipped, because they have not started, so that their duration is unknown."""

    shared: int = 0
    """Jobs that requested a fraction of a GPU; they count as whole GPUs."""

    def sentence(self, cluster: str) -> str:
        """The sentence that describes these numbers for people."""
        parts = [f"Ray of {cluster} knows of {len(self.jobs)} tasks, actors and bundles with GPUs"]
        if self.running:
            parts.append(f"{self.running} of them still run, and count with their time so far")
        if self.shared:
            parts.append(f"{self.shared} request parts of GPUs, and count as whole GPUs")
        if self.waiting:
            parts.append(f"{self.waiting} more wait for their GPUs, and are skipped")
        return "; ".join(parts) + "."


def demand(cluster: Cluster, namespace: str, name: str) -> Demand:
    """The demand that the Ray of a RayCluster reports. Raises HistoryError if it does not answer."""
    try:
        pods = Pods(cluster, namespace, name)
        return demand_of(pods.run_in_head(pods.all(), payloads.text("gpu_history_in_head")))
    except (UnknownRayError, ClusterUnreachableError) as error:
        raise HistoryError(f"RayCluster {namespace}/{name} cannot be asked for its history: {error}") from error


def demand_of(answer: Mapping[str, Any]) -> Demand:
    """The jobs in the output of gpu_history_in_head.py."""
    started = [each for each in answer["demands"] if each["started"]]
    return Demand(
        jobs={f"{answer['cluster']}-{each['id']}": _job(each, answer["now"]) for each in started},
        running=sum(each["ended"] is None for each in started),
        # A demand that was cancelled before it started is neither running nor waiting.
        waiting=sum(each["started"] is None and each["ended"] is None for each in answer["demands"]),
        shared=sum(each["gpus"] != int(each["gpus"]) for each in started),
    )


def _job(demand: Mapping[str, Any], now: float) -> Job:
    return Job(math.ceil(demand["gpus"]), max((demand["ended"] or now) - demand["started"], 0.0), demand["asked"])
