"""What people may try with RayClusters, RayJobs and RayServices of their own, and why the API server refuses it."""

from collections.abc import Callable
from typing import Any

from components.access.neighbours import IDLE_FINALIZER


def submitter(**container: Any) -> dict[str, Any]:
    """A pod template for K8sJobMode."""
    made = {"name": "submitter", "image": "rayproject/ray:2.60.0", **container}
    return {"spec": {"restartPolicy": "Never", "containers": [made]}}


SUBMITTER = submitter(
    securityContext={
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
)
"""One that Pod Security `restricted` admits."""

ON_TRAINING: dict[str, Any] = {"clusterSelector": {"ray.io/cluster": "training"}}


JOBS = {
    "on a RayCluster of the user": (ON_TRAINING, ""),
    "on another RayCluster": ({"clusterSelector": {"ray.io/cluster": "adhoc"}}, "you may not use RayCluster adhoc"),
    "on no RayCluster": ({}, "name the RayCluster that it runs on"),
    "with a RayCluster of its own": ({"rayClusterSpec": True}, "rayClusterSpec is for those who may make RayClusters"),
    "with both": ({**ON_TRAINING, "rayClusterSpec": True}, "rayClusterSpec is for those who may make RayClusters"),
    "with a submitter of its own": (
        {**ON_TRAINING, "submitterPodTemplate": SUBMITTER},
        "submitterPodTemplate is for those who may make RayClusters",
    ),
}
"""RayJobs, and why they are refused. `rayClusterSpec: True` is replaced with the spec of the running RayCluster."""


MODES: dict[str, tuple[dict[str, Any], str]] = {
    "HTTPMode": ({"submissionMode": "HTTPMode"}, ""),
    "InteractiveMode": ({"submissionMode": "InteractiveMode"}, ""),
    "K8sJobMode with a submitter that meets the level": ({"submitterPodTemplate": SUBMITTER}, ""),
    "no mode, which is K8sJobMode": ({}, "set submissionMode: HTTPMode"),
    "K8sJobMode with a submitter as KubeRay's own": (
        {"submitterPodTemplate": submitter()},
        "set submissionMode: HTTPMode",
    ),
    "SidecarMode": ({"submissionMode": "SidecarMode"}, "set submissionMode: HTTPMode"),
}
"""How a RayJob of a Ray cluster admin is submitted, and why it is refused."""


NOBODY = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"}
"""An owner that does not exist: Kubernetes' garbage collector deletes what it owns."""

CRITICAL = {"priorityClassName": "system-cluster-critical"}
EXTERNAL = {"spec": {"externalIPs": ["192.0.2.1"], "ports": [{"port": 8000}]}}

Attack = Callable[[dict[str, Any]], Any]

ATTACKS: dict[str, tuple[Attack, str]] = {
    "a head above all pods": (
        lambda cluster: cluster["spec"]["headGroupSpec"]["template"]["spec"].update(CRITICAL),
        "PriorityClass system-cluster-critical may evict pods of other tenants: use ray-head or ray-worker",
    ),
    "workers above all pods": (
        lambda cluster: cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"].update(CRITICAL),
        "PriorityClass system-cluster-critical may evict",
    ),
    "a gang before all others": (
        lambda cluster: cluster["metadata"].update(labels={"ray.io/priority-class-name": "system-cluster-critical"}),
        "PriorityClass system-cluster-critical may evict",
    ),
    "an address of others": (
        lambda cluster: cluster["spec"]["headGroupSpec"].update(headService=EXTERNAL),
        "externalIPs take the traffic of other pods",
    ),
    "an Ingress for all hosts": (
        lambda cluster: cluster["spec"]["headGroupSpec"].update(enableIngress=True),
        "remove enableIngress",
    ),
    "an owner that does not exist": (
        lambda cluster: cluster["metadata"].update(ownerReferences=[NOBODY]),
        "ownerReferences are KubeRay's",
    ),
    "a finalizer": (
        lambda cluster: cluster["metadata"].update(finalizers=["example.com/never"]),
        "finalizers are KubeRay's",
    ),
    "nothing": (lambda _: None, ""),
}
"""What a Ray cluster admin may try with a RayCluster, and why it is refused."""


ONLY_SCALES = "this account may only scale RayClusters"

GROUP = "/spec/workerGroupSpecs/0"

PATCHES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "more workers": ([{"op": "replace", "path": f"{GROUP}/replicas", "value": 1}], ""),
    "one worker less": (
        [{"op": "add", "path": f"{GROUP}/scaleStrategy", "value": {"workersToDelete": ["training-worker-1"]}}],
        "",
    ),
    "another account": (
        [{"op": "add", "path": f"{GROUP}/template/spec/serviceAccountName", "value": "ray-deployer"}],
        ONLY_SCALES,
    ),
    "a larger maximum": (
        [{"op": "replace", "path": f"{GROUP}/maxReplicas", "value": 99}],
        ONLY_SCALES,
    ),
    "one group less": ([{"op": "remove", "path": GROUP}], ONLY_SCALES),
    "another head": (
        [{"op": "replace", "path": "/spec/headGroupSpec/rayStartParams", "value": {}}],
        ONLY_SCALES,
    ),
    "no token": ([{"op": "remove", "path": "/spec/authOptions"}], ONLY_SCALES),
    "another queue": (
        [{"op": "add", "path": "/metadata/labels", "value": {"volcano.sh/queue-name": "other"}}],
        ONLY_SCALES,
    ),
    "an owner that does not exist": (
        [{"op": "add", "path": "/metadata/ownerReferences", "value": [NOBODY]}],
        "ownerReferences are KubeRay's",
    ),
    "the autoscaler's finalizer": ([{"op": "add", "path": "/metadata/finalizers", "value": [IDLE_FINALIZER]}], ""),
    "another finalizer": (
        [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/never"]}],
        "finalizers are KubeRay's",
    ),
}
"""Patches of the autoscaler, which the head's account may send, and others that a Ray job may try with that account."""


def inside(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object that contains the spec of a RayCluster."""
    job = {"entrypoint": "true", "submissionMode": "HTTPMode", "rayClusterSpec": spec}
    specs = {"RayJob": job, "RayCronJob": {"schedule": "@daily", "jobTemplate": job}}
    specs["RayService"] = {"serveConfigV2": "", "rayClusterConfig": spec}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "other"}, "spec": specs[kind]}
