"""Where pod templates and the specs of RayClusters stand, kind by kind."""

from .problems import Path

RAY = "ray.io"
"""API group of KubeRay's kinds."""

POD_TEMPLATES: dict[tuple[str, str], Path] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""By API group and kind, where the one pod template of a kind stands. Of a Pod it is the object itself."""

RAY_CLUSTERS: dict[str, Path] = {
    "RayCluster": ("spec",),
    "RayJob": ("spec", "rayClusterSpec"),
    "RayService": ("spec", "rayClusterConfig"),
    "RayCronJob": ("spec", "jobTemplate", "rayClusterSpec"),
}
"""Where a kind of KubeRay's has the spec of a RayCluster (ray-operator/apis/ray/v1/*_types.go)."""

RAY_JOBS: dict[str, Path] = {"RayJob": ("spec",), "RayCronJob": ("spec", "jobTemplate")}
"""Where a kind of KubeRay's has the spec of a RayJob."""

SUBMITTERS: dict[str, Path] = {kind: (*path, "submitterPodTemplate") for kind, path in RAY_JOBS.items()}
"""Where a kind of KubeRay's has the pod template of a job's submitter."""

VOLCANO_JOB = ("batch.volcano.sh", "Job")
"""API group and kind of Volcano's Job, each of whose tasks has a pod template."""
