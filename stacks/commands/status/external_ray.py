"""The last check of an external cluster, and the jobs that pods submit there. Pure functions.

Both are read from the pods in the tenant's namespace. The external cluster itself is not asked: this account may be
unable to reach it, and must not read its token.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from components.external_cluster.manifests import job_name
from components.external_cluster.progress import message_of
from components.external_cluster.settings import ExternalClusterSettings
from components.ray_cluster.readiness import pod_reasons
from components.ray_job.manifests import SUBMITTER_LABEL
from core.body import Body
from stacks.commands.status.clusters import phase
from stacks.commands.status.owners import JobStatus, missing_job
from stacks.commands.status.snapshot import Found, Live, seconds_between

_OF_RAY = ("SUCCEEDED", "FAILED", "STOPPED")
"""Last statuses of a job, with which the message of its pod begins."""


class Reachability(StrEnum):
    """What the last check of a connection has shown."""

    CONNECTED = "connected"
    FAILED = "failed"
    CHECKED_NOW = "being checked"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ExternalStatus:
    """The status of an external cluster, as of its last check."""

    name: str
    state: Reachability
    address: str
    checked: str | None = None
    """When the check ended, in RFC 3339."""
    ray_version: str | None = None
    reasons: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.state is Reachability.CONNECTED


def external_status(cluster: ExternalClusterSettings, found: Found) -> ExternalStatus:
    pods = _pods(cluster.name, found)
    if not pods:
        why = found.absence("pods")[1]
        return ExternalStatus(
            cluster.name, Reachability.UNKNOWN, cluster.dashboard_address, reasons=(f"its check: {why}",)
        )
    pod, ended = pods[-1], phase(pods[-1])
    if ended == "Succeeded":
        return ExternalStatus(
            cluster.name, Reachability.CONNECTED, cluster.dashboard_address, _end(pod), _version(message_of(pod))
        )
    state = Reachability.FAILED if ended == "Failed" else Reachability.CHECKED_NOW
    return ExternalStatus(
        cluster.name, state, cluster.dashboard_address, _end(pod), reasons=tuple(_reasons(pod, "it is being checked"))
    )


def submitted_status(name: str, cluster: str, found: Found, live: Live) -> JobStatus:
    """The status of a job of the stack file on an external cluster."""
    pods = _pods(name, found)
    if not pods:
        return missing_job(name, found, "pods")
    pod, state = pods[-1], phase(pods[-1])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ())
    message = message_of(pod) or ""
    word = message.partition(":")[0]
    deployment = {"Succeeded": "Complete", "Failed": "Failed"}.get(state, "Running" if ready else "Initializing")
    of_ray = {"Complete": "SUCCEEDED", "Running": "RUNNING", "Failed": word if word in _OF_RAY else None}
    well = deployment in ("Complete", "Running")
    start, end = pod["status"].get("startTime"), _end(pod)
    return JobStatus(
        name,
        deployment,
        of_ray.get(deployment),
        cluster,
        seconds_between(pods[0]["metadata"].get("creationTimestamp"), live.at),
        start,
        seconds_between(start, datetime.fromisoformat(end) if end else live.at),
        ok=well,
        message=message or None,
        reasons=() if well else tuple(_reasons(pod, f"{cluster} has not begun it")),
        in_stack_file=True,
    )


def _pods(job: str, found: Found) -> Sequence[Body]:
    """The pods of a job or check, from the oldest on."""
    name = job_name(job)
    mine = [pod for pod in found.all("pods") if (pod["metadata"].get("labels") or {}).get(SUBMITTER_LABEL) == name]
    return sorted(mine, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))


def _reasons(pod: Body, otherwise: str) -> list[str]:
    message = message_of(pod)
    return [message] if message else pod_reasons(dict(pod), {}) or [otherwise]


def _end(pod: Body) -> str | None:
    for each in pod["status"].get("containerStatuses") or ():
        if ended := (each.get("state") or {}).get("terminated"):
            return str(ended["finishedAt"]) if ended.get("finishedAt") else None
    return None


def _version(message: str | None) -> str | None:
    """From the message of a check; a simulated node has none."""
    try:
        found: Any = json.loads(message or "")
    except ValueError:
        return None
    return found.get("rayVersion") if isinstance(found, dict) else None
