"""Gangs of simulated pods, created as with kubectl: queues, PodGroups and their pods."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from kubernetes import client, utils

from core.nodes import GPU_RESOURCE
from local.rehearsal import Rehearsal

SETTLES = 180.0
"""Seconds that one or two rounds of the scheduler may take on a busy machine."""

HOME = "gangs"
"""Namespace of gangs, unless a test uses another."""

SCHEDULING = ("scheduling.volcano.sh", "v1beta1")


CONFINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""The container settings that Pod Security `restricted` requires."""


def pod_spec(limits: Mapping[str, str]) -> dict[str, Any]:
    """The spec of a pod that Pod Security `restricted` admits."""
    container = {
        "name": "ray",
        "image": "rayproject/ray:2.60.0",
        "resources": {"limits": limits},
        "securityContext": CONFINED,
    }
    context = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"terminationGracePeriodSeconds": 0, "securityContext": context, "containers": [container]}


class Gangs:
    """Queues, and the PodGroups and pods of a namespace, created as with kubectl."""

    def __init__(self, cluster: Rehearsal, home: str = HOME) -> None:
        self.home = home
        self.api = cluster.client()
        self.core, self.apps = client.CoreV1Api(self.api), client.AppsV1Api(self.api)
        self.objects = client.CustomObjectsApi(self.api)

    def queue(self, name: str, dry_run: str | None = None, **spec: Any) -> None:
        body = {
            "apiVersion": "/".join(SCHEDULING),
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": 1, **spec},
        }
        self.objects.create_cluster_custom_object(*SCHEDULING, "queues", body, dry_run=dry_run)

    def delete_queue(self, name: str) -> None:
        self.objects.delete_cluster_custom_object(*SCHEDULING, "queues", name)

    def start(self, name: str, pods: int, gpus: int, queue: str = "default", minimum: int | None = None) -> None:
        """A gang of `pods` pods, with `gpus` GPUs each. It needs the `minimum` of them, all by default."""
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
        self.objects.create_namespaced_custom_object(*SCHEDULING, self.home, "podgroups", group)
        for index in range(pods):
            self.pod(name, index, gpus)

    def pod(self, gang: str, index: int, gpus: int, scheduler: str = "volcano") -> None:
        """A pod of a gang; with Kubernetes' own scheduler it is independent."""
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{gang}-{index}",
                "labels": {"gang": gang},
                "annotations": {"scheduling.k8s.io/group-name": gang},
            },
            "spec": {"schedulerName": scheduler, **pod_spec({GPU_RESOURCE: str(gpus), "cpu": "1"})},
        }
        utils.create_from_dict(self.api, body, namespace=self.home)

    def end_pods(self, gang: str) -> None:
        self.core.delete_collection_namespaced_pod(self.home, label_selector=f"gang={gang}")

    def end(self, name: str) -> None:
        self.end_pods(name)
        self.objects.delete_namespaced_custom_object(*SCHEDULING, self.home, "podgroups", name)

    def placed(self, name: str) -> list[str]:
        """The nodes of a gang's pods."""
        nodes = [pod["spec"].get("nodeName") for pod in self.pods(self.home, f"gang={name}")]
        return sorted(node for node in nodes if node)

    def state_of_queue(self, name: str) -> str:
        found = self.objects.get_cluster_custom_object(*SCHEDULING, "queues", name)
        return str(cast("dict[str, Any]", found).get("status", {}).get("state"))

    def pods(self, namespace: str, labels: str = "") -> list[dict[str, Any]]:
        answer: Any = self.core.list_namespaced_pod(namespace, label_selector=labels, _preload_content=False)
        return list(json.loads(answer.data)["items"])

    def group(self, namespace: str, name: str) -> dict[str, Any]:
        """A PodGroup."""
        found = self.objects.get_namespaced_custom_object(*SCHEDULING, namespace, "podgroups", name)
        return cast("dict[str, Any]", found)

    def conditions(self, name: str) -> str:
        """The conditions that Volcano reports for a PodGroup."""
        return str(self.group(self.home, name).get("status", {}).get("conditions"))


def settled(reached: Callable[[], Any], seconds: float = SETTLES) -> None:
    """Waits until it is true."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)
