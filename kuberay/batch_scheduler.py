"""Limits of the operator's batch scheduler (controllers/ray/batchscheduler: DoBatchSchedulingOnSubmission)."""

from core.problems import Path

from .formats import integer
from .rules import Body, Found, problem

_MODE_LABEL = "volcano.sh/network-topology-mode"
_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"


def check(body: Body, job: tuple[Body, Path] | None, scheduler: str | None) -> Found:
    """The rules of the operator's batch scheduler. `job`: a RayJob's spec and its path."""
    if scheduler == "volcano":
        yield from _volcano_labels(body, job)
    if job is None:
        return
    spec, path = job
    mode = spec["submissionMode"]
    if scheduler == "volcano" and "rayClusterSpec" not in spec:
        message = "volcano schedules no job on a selected cluster: give the job a rayClusterSpec"
        yield problem("scheduler-ray-job", (*path, "rayClusterSpec"), None, message)
    if scheduler == "scheduler-plugins":
        message = (
            "scheduler-plugins schedules RayClusters only: use volcano or yunikorn as the operator's batchScheduler"
        )
        yield problem("scheduler-ray-job", ("kind",), body["kind"], message)
    if scheduler == "kai-scheduler" and mode == "K8sJobMode":
        message = "kai-scheduler cannot schedule the pod that submits: set submissionMode to HTTPMode or SidecarMode"
        yield problem("scheduler-ray-job", (*path, "submissionMode"), mode, message)


def _volcano_labels(body: Body, job: tuple[Body, Path] | None) -> Found:
    """createPodGroup reads the labels of a RayCluster or RayJob. The cluster of a RayService inherits its labels."""
    labels = body["metadata"].get("labels", {})
    # RayJobs of a RayCronJob do not inherit its labels. A job on a selected cluster has no pod group.
    if body["kind"] == "RayCronJob" or (job is not None and "rayClusterSpec" not in job[0]):
        return
    tier = labels.get(_TIER_LABEL)
    if tier is not None and _MODE_LABEL in labels and integer(tier) is None:
        message = f"{tier!r} is no tier of a network topology: give a whole number"
        yield problem("scheduler-network-tier", ("metadata", "labels", _TIER_LABEL), tier, message)
