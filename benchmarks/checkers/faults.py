"""Manifests with one fault each, and the same manifests without it.

The manifests without a fault meet the rules of this project (testbed/policies/bodies.py) and the further requirements
of the other checkers, so that a fault appears as a new finding.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from core.body import Body
from testbed.policies.bodies import (
    binding,
    body,
    budget,
    cron_job,
    default_deny,
    deployment,
    for_ray,
    ingress,
    opened,
    pod,
    queue,
    ray_cluster,
    ray_job,
    ray_service,
    redis,
    role,
    service,
    volcano_job,
)
from testbed.policies.case import MISSING, put
from testbed.policies.wrappers import app_wrapper, job_set, leader_worker_set, ray_cluster_fleet

Changes = dict[str, Any]
"""Values by paths in an object: keys and indexes, separated by spaces. MISSING removes the existing value."""


@dataclass(frozen=True)
class Case:
    """Objects without and with a fault."""

    fault: str
    place: str
    good: tuple[Body, ...]
    bad: tuple[Body, ...]
    changed: tuple[str, ...] = ()
    """The paths in the first object that differ."""


def ray_cron_job() -> Body:
    """A RayCronJob."""
    return body("ray.io/v1", "RayCronJob", spec={"schedule": "0 3 * * *", "jobTemplate": ray_job()["spec"]})


_HEAD = "headGroupSpec template spec"
_WORKER = "workerGroupSpecs 0 template spec"

PLACES: dict[str, tuple[Callable[[], Body], str]] = {
    "Pod": (pod, "spec"),
    "Deployment": (deployment, "spec template spec"),
    "StatefulSet": (redis, "spec template spec"),
    "CronJob": (cron_job, "spec jobTemplate spec template spec"),
    "RayCluster, head": (ray_cluster, f"spec {_HEAD}"),
    "RayCluster, workers": (ray_cluster, f"spec {_WORKER}"),
    "RayJob, workers": (ray_job, f"spec rayClusterSpec {_WORKER}"),
    "RayJob, submitter": (ray_job, "spec submitterPodTemplate spec"),
    "RayService, workers": (ray_service, f"spec rayClusterConfig {_WORKER}"),
    "RayCronJob, workers": (ray_cron_job, f"spec jobTemplate rayClusterSpec {_WORKER}"),
    "Job of Volcano's": (volcano_job, "spec tasks 0 template spec"),
    "JobSet": (job_set, "spec replicatedJobs 0 template spec template spec"),
    "LeaderWorkerSet, workers": (leader_worker_set, "spec leaderWorkerTemplate workerTemplate spec"),
    "RayClusterFleet, workers": (ray_cluster_fleet, f"spec template spec {_WORKER}"),
    "RayCluster in an AppWrapper": (lambda: app_wrapper(ray_cluster()), f"spec components 0 template spec {_WORKER}"),
}
"""Objects with a pod template, and the path of its spec."""

RAYS = tuple(place for place in PLACES if place.startswith("Ray") and not place.endswith("submitter"))
"""The places of pods of Ray."""

_C = "containers 0"
_SECURITY = f"{_C} securityContext"

IN_PODS: dict[str, Changes] = {
    "a folder of the node": {"volumes 0": {"name": "fast", "hostPath": {"path": "/etc"}}},
    "privileged": {f"{_SECURITY} privileged": True},
    "the node's network": {"hostNetwork": True},
    "a port of the node": {f"{_C} ports 0": {"containerPort": 80, "hostPort": 8080}},
    "runs as root": {f"{_SECURITY} runAsUser": 0, f"{_SECURITY} runAsNonRoot": False},
    "may get more rights": {f"{_SECURITY} allowPrivilegeEscalation": True},
    "adds SYS_ADMIN": {f"{_SECURITY} capabilities add": ["SYS_ADMIN"]},
    "no seccomp profile": {"securityContext seccompProfile": MISSING},
    "may write its image's files": {f"{_SECURITY} readOnlyRootFilesystem": False},
    "no resources": {f"{_C} resources": MISSING},
    "no limit of memory": {f"{_C} resources limits memory": MISSING},
    "image :latest": {f"{_C} image": "registry.example.com/main:latest"},
    "a tag, no digest": {f"{_C} image": "registry.example.com/main:1.2.3"},
    "a token in args": {f"{_C} args": [f"--token=hf_{'aB' * 17}"]},
    "no AppArmor": {f"{_SECURITY} appArmorProfile": {"type": "Unconfined"}},
    "a type of SELinux": {f"{_SECURITY} seLinuxOptions": {"type": "spc_t"}},
    "an unsafe sysctl": {"securityContext sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
    "password in env": {f"{_C} env 0": {"name": "DB_PASSWORD", "value": "correct-horse-7"}},
}
"""Faults of a pod: changes by paths in its spec."""


def of_pods() -> Iterator[Case]:
    """Cases for each fault of a pod in each place."""
    for place, (make, spec) in PLACES.items():
        good = _with_all_requirements(make(), spec)
        for fault, changes in IN_PODS.items():
            below = {f"{spec} {at}": new for at, new in changes.items()}
            yield Case(fault, place, (good,), (_changed(good, below),), tuple(below))


def _with_all_requirements(made: Body, spec: str) -> Body:
    """Adds the requirements of checkov and kube-score for every container, so that none hides a fault."""
    for at, value in {
        f"{spec} {_C} imagePullPolicy": "Always",
        f"{spec} {_SECURITY} runAsUser": 20_000,
        f"{spec} {_SECURITY} runAsGroup": 20_000,
        f"{spec} {_SECURITY} runAsNonRoot": True,
        f"{spec} {_C} resources limits cpu": "4",
        f"{spec} {_C} resources limits ephemeral-storage": "1Gi",
        f"{spec} {_C} resources requests ephemeral-storage": "1Gi",
    }.items():
        put(made, at, value)
    image = _at(made, f"{spec} {_C} image")
    put(made, f"{spec} {_C} image", image if "@" in image else f"{image}@sha256:{'d' * 64}")
    return made


def _at(made: Body, at: str) -> Any:
    value: Any = made
    for step in at.split():
        value = value[int(step) if isinstance(value, list) else step]
    return value


def _changed(good: Body, changes: Changes) -> Body:
    made = copy.deepcopy(good)
    for at, value in changes.items():
        put(made, at, value)
    return made


def _account(made: Body) -> Body:
    return _changed(made, {f"spec {_HEAD} serviceAccountName": "ray"})


def _in_queue(made: Body) -> Body:
    return _changed(made, {"metadata labels volcano.sh/queue-name": "team-a", "spec workerGroupSpecs 0 minReplicas": 8})


OF_RAY: dict[str, tuple[tuple[Body, ...], Changes]] = {
    "anybody may submit jobs (no token)": ((ray_cluster(),), {"spec authOptions": MISSING}),
    "dashboard on a LoadBalancer": ((ray_cluster(),), {"spec headGroupSpec serviceType": "LoadBalancer"}),
    "a release with known holes": ((ray_cluster(),), {"spec rayVersion": "2.46.0"}),
    "head and workers of two versions": (
        (ray_cluster(),),
        {f"spec {_WORKER} {_C} image": "rayproject/ray:2.59.0@sha256:" + "c" * 64},
    ),
    "tasks on the head": ((ray_cluster(),), {"spec headGroupSpec rayStartParams": {}}),
    "the autoscaler may get more rights": (
        (ray_cluster(),),
        {"spec autoscalerOptions securityContext allowPrivilegeEscalation": True},
    ),
    "workers with a token of Kubernetes": ((ray_cluster(),), {f"spec {_WORKER} automountServiceAccountToken": True}),
    "Ray's account reads Secrets": (
        (role(), _account(ray_cluster()), binding()),
        {"rules 0 resources": ["secrets"]},
    ),
    "password of Redis in plain text": (
        (ray_cluster(),),
        {"spec gcsFaultToleranceOptions redisPassword": {"value": "correct-horse-7"}},
    ),
    "two clusters in one place of Redis": (
        (
            _changed(ray_cluster("other"), {"spec gcsFaultToleranceOptions externalStorageNamespace": "b"}),
            ray_cluster(),
        ),
        {"spec gcsFaultToleranceOptions externalStorageNamespace": "team-a.it"},
    ),
    "no NetworkPolicy where Ray runs": (
        (default_deny(), ray_cluster()),
        {"spec podSelector": {"matchLabels": {"a": "b"}}},
    ),
    "a name that KubeRay refuses": ((ray_cluster(),), {"metadata name": "a" * 54}),
    "bounds that KubeRay refuses": ((ray_cluster(),), {"spec workerGroupSpecs 0 minReplicas": 9}),
    "a cluster that outlives its job": ((ray_job(),), {"spec shutdownAfterJobFinishes": False}),
    "a gang beyond the CPUs of its queue": (
        (queue("team-a"), _in_queue(ray_cluster())),
        {"spec capability": {"cpu": "35"}},
    ),
    "a TPU on the head": ((ray_cluster(),), {f"spec {_HEAD} {_C} resources limits google.com/tpu": "4"}),
    "a token in the runtime environment": ((ray_job(),), {"spec runtimeEnvYAML": "env_vars: {HF_TOKEN: correct-7}"}),
    "a token in the entrypoint": ((ray_job(),), {"spec entrypoint": f"python a.py --token hf_{'aB' * 17}"}),
    "a token in an annotation": ((ray_cluster(),), {"metadata annotations note": f"hf_{'aB' * 17}"}),
    "Serve on a LoadBalancer": ((ray_service(),), {"spec serveService": {"spec": {"type": "LoadBalancer"}}}),
    "no port for Serve": (
        (ray_service(),),
        {f"spec rayClusterConfig {_HEAD} {_C} ports": [{"name": "dashboard", "containerPort": 8265}]},
    ),
    "a misspelt field": ((ray_cluster(),), {"spec rayVersions": "2.60.0"}),
    "egress without DNS": (
        (opened(53, 443), default_deny(), ray_cluster()),
        {"spec egress": [{"ports": [{"port": 443}]}]},
    ),
    "a NetworkPolicy that allows all": ((for_ray(), ray_cluster()), {"spec podSelector": {}, "spec ingress": [{}]}),
    "a gang that its queue never admits": (
        (queue("team-a"), _in_queue(ray_cluster())),
        {"spec capability": {"nvidia.com/gpu": "4"}},
    ),
}
"""Faults of Ray: objects without the fault, and the changes to the first object that cause it."""

ELSEWHERE: dict[str, tuple[tuple[Body, ...], Changes]] = {
    "binds cluster-admin": ((binding("ClusterRoleBinding"),), {"roleRef name": "cluster-admin"}),
    "a Role that allows everything": ((role(),), {"rules 0 verbs": ["*"], "rules 0 resources": ["*"]}),
    "binds edit in all namespaces": ((binding("ClusterRoleBinding"),), {"roleRef name": "edit"}),
    "rights for all pods of a namespace": (
        (binding(),),
        {"subjects 0": {"kind": "Group", "name": "system:serviceaccounts:team-a"}},
    ),
    "a Role that makes tokens": (
        (role(),),
        {"rules 0 resources": ["serviceaccounts/token"], "rules 0 verbs": ["create"]},
    ),
    "a token in a ConfigMap": ((body("v1", "ConfigMap", data={}),), {"data HF_TOKEN": "correct-7"}),
    "Redis without a password": (
        (redis(), budget()),
        {"spec template spec containers 0 args": ["--appendonly", "yes"]},
    ),
    "a Role that may exec into pods": ((role(),), {"rules 0 resources": ["pods/exec"]}),
    "a Service open to the outside": ((service(), deployment()), {"spec type": "NodePort"}),
    "a Service that selects no pod": ((service(), deployment()), {"spec selector app": "typo"}),
    "an Ingress without TLS": ((ingress(),), {"spec tls": MISSING}),
    "a Secret with its values": ((body("v1", "Secret"),), {"stringData": {"password": "correct-horse-7"}}),
    "Redis that drops keys": ((redis(), budget()), {"spec template spec containers 0 args 1": "allkeys-lru"}),
    "no PodDisruptionBudget": ((budget(), redis()), {"spec selector matchLabels app": "typo"}),
    "no liveness probe": ((deployment(),), {"spec template spec containers 0 livenessProbe": MISSING}),
    "an API that was removed": ((cron_job(),), {"apiVersion": "batch/v1beta1"}),
}
"""Faults of other objects."""


def of_objects(faults: dict[str, tuple[tuple[Body, ...], Changes]]) -> Iterator[Case]:
    """Cases for each fault in its objects."""
    for fault, (good, changes) in faults.items():
        yield Case(fault, "", good, (_changed(good[0], changes), *good[1:]), tuple(changes))
