"""Gangs of simulated pods, as kubectl makes them: queues, PodGroups and their pods."""

import time
from collections.abc import Callable
from typing import Any, cast

from kubernetes import client, utils

from local.rehearsal import Rehearsal
from stacks.settings import GPU_RESOURCE

SETTLES = 60.0
"""Seconds that a round or two of the scheduler, and what leads to them, may take on a busy machine."""

HOME = "gangs"
"""Namespace of the pods here."""

SCHEDULING = ("scheduling.volcano.sh", "v1beta1")


class Gangs:
    """Queues, PodGroups and their pods, as kubectl makes them."""

    def __init__(self, cluster: Rehearsal) -> None:
        self.api = cluster.client()
        self.core, self.apps = client.CoreV1Api(self.api), client.AppsV1Api(self.api)
        self.objects = client.CustomObjectsApi(self.api)

    def queue(self, name: str, **spec: Any) -> None:
        body = {
            "apiVersion": "/".join(SCHEDULING),
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, **spec},
        }
        self.objects.create_cluster_custom_object(*SCHEDULING, "queues", body)

    def delete_queue(self, name: str) -> None:
        self.objects.delete_cluster_custom_object(*SCHEDULING, "queues", name)

    def start(self, name: str, pods: int, gpus: int, queue: str = "default", minimum: int | None = None) -> None:
        """A gang of as many pods, with as many GPUs each. It needs the `minimum` of them, all by default."""
        needed = pods if minimum is None else minimum
        group = {
            "apiVersion": "/".join(SCHEDULING),
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {
                "minMember": needed,
                "minResources": {GPU_RESOURCE: str(needed * gpus), "cpu": str(needed)},
                "queue": queue,
            },
        }
        self.objects.create_namespaced_custom_object(*SCHEDULING, HOME, "podgroups", group)
        for index in range(pods):
            amounts = {GPU_RESOURCE: str(gpus), "cpu": "1"}
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{index}",
                    "labels": {"gang": name},
                    "annotations": {"scheduling.k8s.io/group-name": name},
                },
                "spec": {
                    "schedulerName": "volcano",
                    "containers": [{"name": "ray", "image": "rayproject/ray:2.60.0", "resources": {"limits": amounts}}],
                },
            }
            utils.create_from_dict(self.api, pod, namespace=HOME)

    def end(self, name: str) -> None:
        self.core.delete_collection_namespaced_pod(HOME, label_selector=f"gang={name}")
        self.objects.delete_namespaced_custom_object(*SCHEDULING, HOME, "podgroups", name)

    def placed(self, name: str) -> list[str]:
        """The nodes that pods of a gang are on."""
        nodes = [pod["spec"].get("nodeName") for pod in self.pods(HOME, f"gang={name}")]
        return sorted(node for node in nodes if node)

    def state_of_queue(self, name: str) -> str:
        found = self.objects.get_cluster_custom_object(*SCHEDULING, "queues", name)
        return str(cast("dict[str, Any]", found).get("status", {}).get("state"))

    def pods(self, namespace: str, labels: str = "") -> list[dict[str, Any]]:
        found = self.core.list_namespaced_pod(namespace, label_selector=labels)
        return list(self.api.sanitize_for_serialization(found)["items"])

    def group(self, namespace: str, name: str) -> dict[str, Any]:
        """A PodGroup."""
        found = self.objects.get_namespaced_custom_object(*SCHEDULING, namespace, "podgroups", name)
        return cast("dict[str, Any]", found)

    def tells(self, name: str) -> str:
        """What Volcano says of a PodGroup: its conditions."""
        return str(self.group(HOME, name).get("status", {}).get("conditions"))


def settled(reached: Callable[[], Any], seconds: float = SETTLES) -> None:
    """Waits for it."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)
