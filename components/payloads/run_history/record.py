"""What is recorded of a RayJob: its facts, the time that its pods held GPUs, and events. Pure functions."""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from .redaction import Redaction

Body = Any
"""An object as the API server or Ray returns it, or a record."""

VERSION = 1
"""Of the format of records."""

_ENDED = ("Complete", "Failed", "ValidationFailed")
"""States of a RayJob that runs no more (rayjob_types.go: IsJobDeploymentTerminal; rayjob_controller.go: Reconcile)."""

MOST_EVENTS, MOST_PODS = 500, 500
"""In a record. The oldest events are dropped; the GPU time of the oldest pods is kept as a sum."""

TEMPLATE_LABEL, AUTHOR_ANNOTATION = "ray-platform/job-template", "ray-platform/created-by"
CODE_ANNOTATION, SIZE_LABEL = "ray-platform/code", "ray-platform/job-size"
"""As in components/job_template/manifests.py."""

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
"""Label of the pod that submits: the RayJob's name."""

_GPU = re.compile(r"gpu([._-].*)?$|^gpu[.]|/mig-")
"""Resources of GPUs and their slices (KubeRay's utils/resources.go: IsGPUResourceKey), as in core/nodes.py."""


def facts(job: Body, redact: Redaction) -> dict[str, Any]:
    """The fields of a record that the RayJob itself determines."""
    metadata, spec, status = job["metadata"], job["spec"], job.get("status") or {}
    head = (spec.get("rayClusterSpec") or {}).get("headGroupSpec", {}).get("template", {}).get("spec", {})
    in_ray = status.get("rayJobInfo") or {}
    return {
        "version": VERSION,
        "name": metadata["name"],
        "namespace": metadata["namespace"],
        "uid": metadata["uid"],
        "template": (metadata.get("labels") or {}).get(TEMPLATE_LABEL),
        "size": (metadata.get("labels") or {}).get(SIZE_LABEL),
        "author": (metadata.get("annotations") or {}).get(AUTHOR_ANNOTATION),
        "code": (metadata.get("annotations") or {}).get(CODE_ANNOTATION),
        "entrypoint": redact.command(spec.get("entrypoint") or ""),
        "runtimeEnv": redact.settings(spec.get("runtimeEnvYAML") or ""),
        "submissionMode": spec.get("submissionMode") or "K8sJobMode",
        "image": next((each.get("image") for each in head.get("containers") or ()), None),
        "onCluster": (spec.get("clusterSelector") or {}).get("ray.io/cluster"),
        "created": metadata["creationTimestamp"],
        "started": status.get("startTime"),
        "startedInRay": in_ray.get("startTime"),
        "ended": status.get("endTime") or in_ray.get("endTime"),
        "status": status.get("jobStatus") or "",
        "deploymentStatus": status.get("jobDeploymentStatus") or "",
        "reason": status.get("reason") or "",
        "message": redact.text(status.get("message") or "")[:4096],
        "failed": status.get("failed") or 0,
    }


def has_ended(job: Body) -> bool:
    """Whether the job runs no more, and will not by itself."""
    return (job.get("status") or {}).get("jobDeploymentStatus") in _ENDED


def keeps_cluster(job: Body) -> bool:
    """Whether the job's own cluster stays after it."""
    spec = job["spec"]
    return (
        not spec.get("clusterSelector") and not spec.get("shutdownAfterJobFinishes") and "deletionStrategy" not in spec
    )


def note_attempt(record: Body, job: Body) -> None:
    """Adds an attempt to the record when KubeRay has begun one: it has a job ID and a RayCluster of its own."""
    status, attempts = job.get("status") or {}, record.setdefault("attempts", [])
    identifier = status.get("jobId")
    if identifier and all(each["jobId"] != identifier for each in attempts):
        attempts.append({"jobId": identifier, "cluster": status.get("rayClusterName") or "", "log": None})


def note_pods(record: Body, pods: Iterable[Body], now: float) -> None:
    """Writes into the record which pods of its attempts' clusters hold GPUs, and how long; `pods`: those that exist.

    A pod holds its GPUs from its binding to a node until it has ended or is gone. One that vanished counts until it was
    last seen, and until the job's end if that is later: this program may have paused.
    """
    known, existing = record.setdefault("pods", {}), set()
    clusters = {each["cluster"] for each in record.get("attempts", ())} if record["onCluster"] is None else set()
    for pod in pods:
        labels, uid = pod["metadata"].get("labels") or {}, pod["metadata"]["uid"]
        if labels.get("ray.io/cluster") in clusters:
            known[uid] = {**_held(pod, now), "group": labels.get("ray.io/group") or ""}
            existing.add(uid)
    vanished = {uid: each for uid, each in known.items() if uid not in existing}
    for each in vanished.values():
        if each["holds"]:
            each.update(holds=False, until=max(each["until"], record["ended"] or ""))
    for uid in sorted(vanished, key=lambda each: str(known[each]["until"]))[: max(0, len(known) - MOST_PODS)]:
        record["gpuSecondsBefore"] = record.get("gpuSecondsBefore", 0) + _seconds_of(known.pop(uid))


def gpu_hours(record: Body, keeps: bool) -> float | None:
    """GPUs times hours; None if this is not known: the cluster is not the job's own, or no pod of it was ever seen.

    `keeps`: whether the cluster stays after the job, whose own time ends with the job then.
    """
    pods = record.get("pods", {}).values()
    if record["onCluster"] is not None or not (pods or "gpuSecondsBefore" in record):
        return None
    end = seconds(record["ended"]) if keeps and record["ended"] else None
    held: float = sum(_seconds_of(each, end) for each in pods) + record.get("gpuSecondsBefore", 0)
    return round(held / 3600, 4)


def _held(pod: Body, now: float) -> dict[str, Any]:
    status = pod.get("status") or {}
    bound = next(
        (
            each.get("lastTransitionTime")
            for each in status.get("conditions") or ()
            if each["type"] == "PodScheduled" and each["status"] == "True"
        ),
        None,
    )
    ends = [
        state["terminated"]
        for each in status.get("containerStatuses") or ()
        for state in (each.get("state") or {}, each.get("lastState") or {})
        if state.get("terminated")
    ]
    over = status.get("phase") in ("Succeeded", "Failed")
    finished = max((each["finishedAt"] for each in ends if each.get("finishedAt")), default=None)
    bad = [each for each in ends if each.get("exitCode")]
    why = [f"{each.get('reason') or 'ended'}, exit code {each['exitCode']}" for each in bad[:1]]
    return {
        "name": pod["metadata"]["name"],
        "gpus": _gpus(pod),
        "from": bound,
        "until": finished or text(now) if over else text(now) if bound else None,
        "holds": bool(bound) and not over,
        "why": status.get("reason") or "".join(why),
    }


def _gpus(pod: Body) -> float:
    amounts = ((each.get("resources") or {}).get("limits") or {} for each in pod["spec"]["containers"])
    # Kubernetes admits whole numbers of extended resources, with requests equal to limits.
    return sum(float(number) for each in amounts for name, number in each.items() if _GPU.search(name))


def _seconds_of(pod: Body, end: float | None = None) -> float:
    if not pod["from"] or not pod["until"]:
        return 0.0
    until = seconds(pod["until"]) if end is None else min(end, seconds(pod["until"]))
    return float(pod["gpus"]) * max(0.0, until - seconds(pod["from"]))


def event_of(event: Body, redact: Redaction) -> dict[str, Any]:
    """What is kept of an event of Kubernetes."""
    series, about = event.get("series") or {}, event["involvedObject"]
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or ""
    return {
        "time": last,
        "type": event.get("type") or "",
        "reason": event.get("reason") or "",
        "object": f"{about.get('kind')}/{about.get('name')}",
        "message": redact.text(event.get("message") or "")[:1024],
        "count": series.get("count") or event.get("count") or 1,
    }


def is_about(about: Body, names: Iterable[str], job: str) -> bool:
    """Whether an event is about the job, its clusters, their pods, the pods that submit it, or its place in a queue of
    Volcano or Kueue."""
    name, kind = about.get("name") or "", about.get("kind")
    if kind == "Pod" and name.rpartition("-")[0] == job:
        return True
    if kind == "PodGroup":
        return any(name == f"ray-{each}-pg" for each in names)
    return name in names or (kind == "Workload" and name.rpartition("-")[0] == f"rayjob-{job}")


def ray_event_of(event: Body, redact: Redaction) -> dict[str, Any]:
    """What is kept of a cluster event of Ray (ray/util/state/common.py: ClusterEventState)."""
    return {
        "time": str(event.get("time") or ""),
        "type": str(event.get("severity") or ""),
        "reason": str(event.get("source_type") or ""),
        "message": redact.text(str(event.get("message") or ""))[:1024],
    }


def merged_events(known: Mapping[str, Body], new: Mapping[str, Body]) -> dict[str, Body]:
    """Events by their ID, the newest MOST_EVENTS of them in their order."""
    merged = sorted({**known, **new}.items(), key=lambda each: str(each[1]["time"]))
    return dict(merged[-MOST_EVENTS:])


def seconds(moment: str) -> float:
    """Seconds since 1970 of a time as Kubernetes writes it."""
    return calendar.timegm(time.strptime(moment.partition(".")[0].rstrip("Z"), "%Y-%m-%dT%H:%M:%S"))


def text(moment: float) -> str:
    """The opposite."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
