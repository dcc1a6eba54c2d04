"""Edits of RayClusters, one for each field that KubeRay knows, and RayClusters to edit."""

from collections.abc import Callable, Mapping
from typing import Any

Spec = dict[str, Any]

Edit = Callable[[Spec], None]


def spec(scales: bool = False, recreate: bool = False, hosts: int = 1) -> Spec:
    """The spec of a RayCluster with a head, and workers in two groups: two and one. `hosts`: pods of each worker."""
    options: Spec = {}
    if scales:
        options |= {"enableInTreeAutoscaling": True, "autoscalerOptions": {"version": "v2", "idleTimeoutSeconds": 60}}
    if recreate:
        options |= {"upgradeStrategy": {"type": "Recreate"}}
    return {
        "rayVersion": "2.60.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
        "workerGroupSpecs": [group("small", 2, hosts), group("big", 1, hosts)],
        **options,
    }


def group(name: str, replicas: int, hosts: int = 1) -> Spec:
    """A worker group."""
    numbers = {"replicas": replicas, "minReplicas": 0, "maxReplicas": 8}
    several = {"numOfHosts": hosts} if hosts > 1 else {}
    return {"groupName": name, **numbers, **several, "rayStartParams": {}, "template": template("ray-worker")}


def template(name: str) -> Spec:
    """A pod template."""
    ray = {"name": name, "image": "rayproject/ray:2.60.0", "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}}}
    return {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [ray]}}


def _set(*path: str | int, to: Any) -> Edit:
    def edit(body: Spec) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at.setdefault(step, {}) if isinstance(at, dict) else at[step]
        at[path[-1]] = to

    return edit


HEAD = ("headGroupSpec",)
HEAD_POD = (*HEAD, "template", "spec")
HEAD_RAY = (*HEAD_POD, "containers", 0)
SMALL = ("workerGroupSpecs", 0)
SMALL_POD = (*SMALL, "template", "spec")
SMALL_RAY = (*SMALL_POD, "containers", 0)

_TOLERATIONS = [{"key": "dedicated", "operator": "Exists"}]


def _renamed(body: Spec) -> None:
    body["workerGroupSpecs"][1]["groupName"] = "huge"


ANY_CLUSTER: Mapping[str, Edit] = {
    "nothing": lambda _body: None,
    "rayVersion": _set("rayVersion", to="2.59.0"),
    "authOptions": _set("authOptions", to={"mode": "token"}),
    "headServiceAnnotations": _set("headServiceAnnotations", to={"a": "b"}),
    "suspend": _set("suspend", to=True),
    "upgradeStrategy-off": _set("upgradeStrategy", to={"type": "None"}),
    "upgradeStrategy-on": _set("upgradeStrategy", to={"type": "Recreate"}),
    "gcsFaultToleranceOptions": _set("gcsFaultToleranceOptions", to={"redisAddress": "redis:6379"}),
    "head-rayStartParams": _set(*HEAD, "rayStartParams", to={"num-cpus": "0"}),
    "head-serviceType": _set(*HEAD, "serviceType", to="NodePort"),
    "head-headService": _set(*HEAD, "headService", to={"metadata": {"labels": {"a": "b"}}}),
    "head-enableIngress": _set(*HEAD, "enableIngress", to=True),
    "head-resources": _set(*HEAD, "resources", to={"CPU": "0"}),
    "head-labels": _set(*HEAD, "labels", to={"a": "b"}),
    "head-pod-labels": _set(*HEAD, "template", "metadata", to={"labels": {"a": "b"}}),
    "head-pod-tolerations": _set(*HEAD_POD, "tolerations", to=_TOLERATIONS),
    "head-pod-nodeSelector": _set(*HEAD_POD, "nodeSelector", to={"kubernetes.io/os": "linux"}),
    "head-image": _set(*HEAD_RAY, "image", to="rayproject/ray:2.59.0"),
    "head-env": _set(*HEAD_RAY, "env", to=[{"name": "A", "value": "b"}]),
    "head-container-resources": _set(*HEAD_RAY, "resources", "limits", "cpu", to="200m"),
    "head-same-quantities": _set(*HEAD_RAY, "resources", "limits", to={"cpu": "0.1", "memory": "1024Mi"}),
    "head-ports": _set(*HEAD_RAY, "ports", to=[{"name": "gcs-server", "containerPort": 6379}]),
    "group-replicas-up": _set(*SMALL, "replicas", to=4),
    "group-replicas-down": _set(*SMALL, "replicas", to=0),
    "group-minReplicas": _set(*SMALL, "minReplicas", to=5),
    "group-maxReplicas": _set(*SMALL, "maxReplicas", to=1),
    "group-rayStartParams": _set(*SMALL, "rayStartParams", to={"block": "true"}),
    "group-resources": _set(*SMALL, "resources", to={"CPU": "1"}),
    "group-labels": _set(*SMALL, "labels", to={"a": "b"}),
    "group-numOfHosts": _set(*SMALL, "numOfHosts", to=2),
    "group-pod-tolerations": _set(*SMALL_POD, "tolerations", to=_TOLERATIONS),
    "group-image": _set(*SMALL_RAY, "image", to="rayproject/ray:2.59.0"),
    "group-added": lambda body: body["workerGroupSpecs"].append(group("new", 1)),
    "group-removed": lambda body: body["workerGroupSpecs"].pop(),
    "group-renamed": _renamed,
    "groups-reordered": lambda body: body["workerGroupSpecs"].reverse(),
}

WITHOUT_AUTOSCALER: Mapping[str, Edit] = {
    "enableInTreeAutoscaling-on": _set("enableInTreeAutoscaling", to=True),
    "group-suspend": _set(*SMALL, "suspend", to=True),
}

WITH_AUTOSCALER: Mapping[str, Edit] = {
    "enableInTreeAutoscaling-off": _set("enableInTreeAutoscaling", to=False),
    "autoscaler-idleTimeoutSeconds": _set("autoscalerOptions", "idleTimeoutSeconds", to=120),
    "autoscaler-upscalingMode": _set("autoscalerOptions", "upscalingMode", to="Conservative"),
    "autoscaler-env": _set("autoscalerOptions", "env", to=[{"name": "A", "value": "b"}]),
    "group-idleTimeoutSeconds": _set(*SMALL, "idleTimeoutSeconds", to=120),
}

WITH_SEVERAL_HOSTS: Mapping[str, Edit] = {
    "numOfHosts-more": _set(*SMALL, "numOfHosts", to=3),
    "numOfHosts-one": _set(*SMALL, "numOfHosts", to=1),
    "replicas-up": _set(*SMALL, "replicas", to=3),
    "replicas-down": _set(*SMALL, "replicas", to=1),
}
