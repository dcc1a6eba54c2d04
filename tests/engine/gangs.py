"""Gangs as an administrator makes them with kubectl, and RayClusters that are gangs, on simulated nodes."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from kubernetes import client

from local.rehearsal import Rehearsal

SETTLES = 60.0
"""Seconds that a round or two of the scheduler, and what leads to them, may take on a busy machine."""

SCHEDULING = ("scheduling.volcano.sh", "v1beta1")

GPUS = "nvidia.com/gpu"

VOLCANO = "volcano"


def settled(reached: Callable[[], Any], seconds: float = SETTLES) -> None:
    """Waits for it."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""What Pod Security `restricted` wants of containers."""


class Gangs:
    """Queues, PodGroups, pods and RayClusters of a namespace."""

    def __init__(self, cluster: Rehearsal, namespace: str) -> None:
        api = cluster.client()
        self._api = api
        self._core, self._objects = client.CoreV1Api(api), client.CustomObjectsApi(api)
        self.namespace = namespace

    def start(self, name: str, pods: int, gpus: int, queue: str = "default", scheduler: str = VOLCANO) -> None:
        """A gang of as many pods, with as many GPUs each."""
        self.group(name, pods, queue)
        for index in range(pods):
            self.pod(name, index, gpus, scheduler)

    def group(self, name: str, pods: int, queue: str) -> None:
        """The gang without its pods."""
        body = {
            "apiVersion": "/".join(SCHEDULING),
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": pods, "queue": queue},
        }
        self._objects.create_namespaced_custom_object(*SCHEDULING, self.namespace, "podgroups", body)

    def pod(self, gang: str, index: int, gpus: int, scheduler: str = VOLCANO) -> None:
        """One of its pods."""
        limits = {GPUS: str(gpus), "cpu": "1"}
        body: Any = {
            "metadata": {
                "name": f"{gang}-{index}",
                "labels": {"gang": gang},
                "annotations": {"scheduling.k8s.io/group-name": gang},
            },
            "spec": {"schedulerName": scheduler, **_template(limits)["spec"]},
        }
        self._core.create_namespaced_pod(self.namespace, body)

    def end_pods(self, name: str) -> None:
        """The pods of a gang go."""
        self._core.delete_collection_namespaced_pod(self.namespace, label_selector=f"gang={name}")

    def end(self, name: str) -> None:
        """The gang goes, with its pods."""
        self.end_pods(name)
        self._objects.delete_namespaced_custom_object(*SCHEDULING, self.namespace, "podgroups", name)

    def placed(self, name: str) -> list[str]:
        """The nodes that pods of a gang are on."""
        return sorted(self._nodes(f"gang={name}"))

    def tells(self, name: str) -> str:
        """What Volcano says of a PodGroup: its conditions."""
        group: Any = self._objects.get_namespaced_custom_object(*SCHEDULING, self.namespace, "podgroups", name)
        return str(group.get("status", {}).get("conditions"))

    def start_ray(self, name: str, workers: Mapping[int, int], queue: str, scales: bool = False) -> None:
        """A RayCluster of as many workers of each number of GPUs; `scales`: none of them has to be there."""
        body = ray_cluster(name, workers, queue, scales)
        self._objects.create_namespaced_custom_object("ray.io", "v1", self.namespace, "rayclusters", body)

    def scale_ray(self, name: str, workers: Mapping[int, int], queue: str) -> None:
        """Another number of workers, as Ray's autoscaler sets it."""
        spec = ray_cluster(name, workers, queue, scales=True)["spec"]
        patch = {"spec": {"workerGroupSpecs": spec["workerGroupSpecs"]}}
        self._objects.patch_namespaced_custom_object("ray.io", "v1", self.namespace, "rayclusters", name, patch)

    def end_ray(self, name: str) -> None:
        """The RayCluster goes, with its pods."""
        self._objects.delete_namespaced_custom_object("ray.io", "v1", self.namespace, "rayclusters", name)
        settled(lambda: not self.placed_ray(name))

    def placed_ray(self, name: str) -> list[str]:
        """The nodes that pods of a RayCluster are on."""
        return sorted(self._nodes(f"ray.io/cluster={name}"))

    def held(self) -> int:
        """GPUs of all pods here that are on a node."""
        pods = self._pods()
        return sum(_gpus(pod) for pod in pods if "nodeName" in pod["spec"])

    def _pods(self, selector: str = "") -> list[dict[str, Any]]:
        listed = self._core.list_namespaced_pod(self.namespace, label_selector=selector)
        found = self._api.sanitize_for_serialization(listed)
        pods: list[dict[str, Any]] = found["items"]
        return pods

    def _nodes(self, selector: str) -> list[str]:
        pods = self._pods(selector)
        return [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]]


def ray_cluster(name: str, workers: Mapping[int, int], queue: str, scales: bool) -> dict[str, Any]:
    """A RayCluster whose head has no GPU."""
    groups = [
        {
            "groupName": f"{gpus}gpu",
            "replicas": replicas,
            "minReplicas": 0 if scales else replicas,
            "maxReplicas": 100 if scales else replicas,
            "rayStartParams": {},
            "template": _template({"cpu": "1", GPUS: str(gpus)}),
        }
        for gpus, replicas in workers.items()
    ]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "labels": {"volcano.sh/queue-name": queue}},
        "spec": {
            "rayVersion": "2.60.0",
            "enableInTreeAutoscaling": scales,
            "autoscalerOptions": {"securityContext": CONFINED},
            "headGroupSpec": {"rayStartParams": {}, "template": _template({"cpu": "1"})},
            "workerGroupSpecs": groups,
        },
    }


def _template(limits: Mapping[str, str]) -> dict[str, Any]:
    container = {
        "name": "ray",
        "image": "rayproject/ray:2.60.0",
        "resources": {"limits": limits},
        "securityContext": CONFINED,
    }
    context = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"terminationGracePeriodSeconds": 0, "securityContext": context, "containers": [container]}
    return {"spec": spec}


def _gpus(pod: Mapping[str, Any]) -> int:
    return sum(int(each["resources"].get("limits", {}).get(GPUS, 0)) for each in pod["spec"]["containers"])
