"""What the metadata and pods of a RayCluster say to batch schedulers. Pure functions."""

from collections.abc import Iterator

from core.body import ReadOnlyBody
from core.problems import Path

QUEUE_LABEL = "volcano.sh/queue-name"
"""Label by which RayClusters and RayJobs name a queue (ray-operator/controllers/ray/batchscheduler/volcano)."""

KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The same for Kueue (kueue, pkg/controller/constants/constants.go)."""

LABELS = {
    KUEUE_QUEUE_LABEL: "Kueue",
    QUEUE_LABEL: "Volcano",
    "kai.scheduler/queue": "KAI",
    "runai/queue": "Run:ai",
    "yunikorn.apache.org/app-id": "YuniKorn",
    "yunikorn.apache.org/queue": "YuniKorn",
    "scheduling.x-k8s.io/pod-group": "the coscheduling plugin",
}
"""Labels that a scheduler reads, with its name. KubeRay copies those of a RayCluster to its pods
(ray-operator/controllers/ray/batchscheduler)."""

ANNOTATIONS = {
    "scheduling.k8s.io/group-name": "Volcano",
    "yunikorn.apache.org/task-group-name": "YuniKorn",
    "yunikorn.apache.org/task-groups": "YuniKorn",
}
"""Annotations of pods that a scheduler reads."""

NAMES = {
    "volcano": "Volcano",
    "kai-scheduler": "KAI",
    "yunikorn": "YuniKorn",
    "scheduler-plugins-scheduler": "the coscheduling plugin",
    "runai-scheduler": "Run:ai",
}
"""Values of schedulerName."""


def named_in(body: ReadOnlyBody) -> Iterator[tuple[Path, str, str]]:
    """What an object, or a pod template, says to a scheduler: the path, the value, and the scheduler's name."""
    metadata = body.get("metadata") or {}
    for part, known in (("labels", LABELS), ("annotations", ANNOTATIONS)):
        for key, value in (metadata.get(part) or {}).items():
            if key in known:
                yield ("metadata", part, key), str(value), known[key]
    scheduler = (body.get("spec") or {}).get("schedulerName")
    if scheduler and scheduler != "default-scheduler":
        yield ("spec", "schedulerName"), scheduler, NAMES.get(scheduler, f"the scheduler {scheduler!r}")
