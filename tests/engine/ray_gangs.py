"""RayClusters that are gangs, created as with kubectl, on simulated nodes."""

from collections.abc import Mapping
from typing import Any, cast

from core.nodes import GPU_RESOURCE
from testbed.gangs import CONFINED, Gangs, pod_spec, settled

KUEUE_API = ("kueue.x-k8s.io", "v1beta2")


class RayGangs(Gangs):
    """RayClusters of a namespace, beside other gangs."""

    queue_label = "volcano.sh/queue-name"

    def start_ray(self, name: str, workers: Mapping[int, int], queue: str, scales: bool = False) -> None:
        """Creates a RayCluster with workers by their number of GPUs; `scales`: no worker has to exist."""
        body = ray_cluster(name, workers, {self.queue_label: queue}, scales)
        self.objects.create_namespaced_custom_object("ray.io", "v1", self.home, "rayclusters", body)

    def scale_ray(self, name: str, workers: Mapping[int, int], queue: str) -> None:
        """Changes the number of workers, like Ray's autoscaler."""
        spec = ray_cluster(name, workers, {self.queue_label: queue}, scales=True)["spec"]
        patch = {"spec": {"workerGroupSpecs": spec["workerGroupSpecs"]}}
        self.objects.patch_namespaced_custom_object("ray.io", "v1", self.home, "rayclusters", name, patch)

    def end_ray(self, name: str) -> None:
        """Deletes the RayCluster and its pods."""
        self.objects.delete_namespaced_custom_object("ray.io", "v1", self.home, "rayclusters", name)
        settled(lambda: not self.placed_ray(name))

    def placed_ray(self, name: str) -> list[str]:
        """The nodes of a RayCluster's pods."""
        pods = self.pods(self.home, f"ray.io/cluster={name}")
        return sorted(pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"])

    def held(self) -> int:
        """GPUs of all pods of the namespace that are on a node."""
        return sum(_gpus(pod) for pod in self.pods(self.home) if "nodeName" in pod["spec"])


def ray_cluster(name: str, workers: Mapping[int, int], labels: Mapping[str, str], scales: bool) -> dict[str, Any]:
    """A RayCluster whose head has no GPU."""
    groups = [
        {
            "groupName": f"{gpus}gpu",
            "replicas": replicas,
            "minReplicas": 0 if scales else replicas,
            "maxReplicas": 100 if scales else replicas,
            "rayStartParams": {},
            "template": {"spec": pod_spec({"cpu": "1", GPU_RESOURCE: str(gpus)})},
        }
        for gpus, replicas in workers.items()
    ]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {
            "rayVersion": "2.60.0",
            "enableInTreeAutoscaling": scales,
            "autoscalerOptions": {"securityContext": CONFINED},
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": pod_spec({"cpu": "1"})}},
            "workerGroupSpecs": groups,
        },
    }


def _gpus(pod: Mapping[str, Any]) -> int:
    return sum(int(each["resources"].get("limits", {}).get(GPU_RESOURCE, 0)) for each in pod["spec"]["containers"])


class Suspended(RayGangs):
    """RayClusters that wait in a queue of Kueue."""

    queue_label = "kueue.x-k8s.io/queue-name"

    def pending(self, queue: str) -> int:
        """The number of RayClusters that wait in a queue."""
        found = self.objects.get_cluster_custom_object(*KUEUE_API, "clusterqueues", queue)
        return int(cast("dict[str, Any]", found)["status"]["pendingWorkloads"])

    def why(self, name: str) -> str:
        """Kueue's messages about a waiting RayCluster."""
        found = cast("dict[str, Any]", self.objects.list_namespaced_custom_object(*KUEUE_API, self.home, "workloads"))
        return str(
            [
                condition["message"]
                for body in found["items"]
                if body["metadata"]["ownerReferences"][0]["name"] == name
                for condition in body.get("status", {}).get("conditions", [])
                if condition["type"] == "QuotaReserved"
            ]
        )
