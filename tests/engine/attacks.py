"""What people may try with RayClusters, RayJobs and RayServices of their own, and why the API server refuses it."""

import base64
import copy
from collections.abc import Callable, Mapping
from typing import Any

from components.access.neighbours import IDLE_FINALIZER
from components.job_template.manifests import (
    CODE_ANNOTATION,
    CODE_VOLUME,
    LONGEST_CODE,
    SIZE_LABEL,
    SIZES_ANNOTATION,
    TEMPLATE_LABEL,
)
from components.job_template.settings import CODE_FILE

Attack = Callable[[dict[str, Any]], Any]
"""Edits the body of an object."""


Specs = Mapping[str | None, Mapping[str, Any]]
"""The specs of a job template's runs, by size."""

SizeAttack = Callable[[dict[str, Any], Specs], Any]
"""Edits the body of a run, with those of all sizes at hand."""


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
    "in the own name": ({**ON_TRAINING, "annotations": {"ray-platform/created-by": "alice"}}, ""),
    "in the name of somebody else": (
        {**ON_TRAINING, "annotations": {"ray-platform/created-by": "root"}},
        "is the name of the user who creates",
    ),
    "with annotations without end": ({**ON_TRAINING, "annotations": {"note": "a" * 2**17}}, "annotations are too long"),
    "with a submitter of its own": (
        {**ON_TRAINING, "submitterPodTemplate": SUBMITTER},
        "submitterPodTemplate is for those who may make RayClusters",
    ),
    "with a number that hides all RayJobs from the operator": (
        {**ON_TRAINING, "entrypointNumCpus": 1e50},
        "should be less than or equal to",
    ),
}
"""RayJobs of alice, and why they are refused. `annotations`: of the RayJob. `rayClusterSpec: True` is replaced with the
spec of the running RayCluster."""


SAME = "a run equals its template"


def _with_entrypoint(entrypoint: str) -> Attack:
    return lambda run: run["spec"].update(entrypoint=entrypoint)


RUNS: dict[str, tuple[Attack, str]] = {
    "as it is": (lambda _: None, ""),
    "with arguments": (lambda run: run["spec"].update(entrypoint="python train.py --epochs=3 s3://data/a_b"), ""),
    "suspended, as Kueue does it": (lambda run: run["spec"].update(suspend=True), ""),
    "another image": (
        lambda run: container_of(run).update(image="example.com/mine:1"),
        SAME,
    ),
    "another command": (lambda run: container_of(run).update(command=["sleep"], args=["1d"]), SAME),
    "a variable": (lambda run: container_of(run).update(env=[{"name": "LD_PRELOAD", "value": "/data/a.so"}]), SAME),
    "an account": (lambda run: pod_of(run).update(serviceAccountName="training"), SAME),
    "a folder of the node": (
        lambda run: pod_of(run).update(volumes=[{"name": "etc", "hostPath": {"path": "/etc"}}]),
        SAME,
    ),
    "another autoscaler": (
        lambda run: run["spec"]["rayClusterSpec"].update(autoscalerOptions={"image": "example.com/mine:1"}),
        SAME,
    ),
    "another submitter": (
        lambda run: run["spec"]["submitterPodTemplate"]["spec"]["containers"][0].update(image="example.com/mine:1"),
        SAME,
    ),
    "a runtime environment": (lambda run: run["spec"].update(runtimeEnvYAML="pip: [evil]"), SAME),
    "another cluster": (lambda run: run["spec"].update(clusterSelector={"ray.io/cluster": "adhoc"}), SAME),
    "a job of another id": (lambda run: run["spec"].update(jobId="other"), SAME),
    "no deadline of the template": (lambda run: run["spec"].pop("activeDeadlineSeconds"), SAME),
    "a priority": (
        lambda run: run["metadata"]["labels"].update({"ray.io/priority-class-name": "ray-head"}),
        SAME,
    ),
    "an annotation for KubeRay": (
        lambda run: run["metadata"]["annotations"].update({"ray.io/overwrite-container-cmd": "true"}),
        SAME,
    ),
    "no annotation of the template": (
        lambda run: run["metadata"]["annotations"].pop("ray-platform/options"),
        SAME,
    ),
    "no label": (lambda run: run["metadata"].pop("labels"), "rayClusterSpec is for those who may make RayClusters"),
    "the label of no template": (
        lambda run: run["metadata"]["labels"].update({"ray-platform/job-template": "other"}),
        "rayClusterSpec is for those who may make RayClusters",
    ),
    "a name of its own": (lambda run: run["metadata"].update(name="training-2"), "a run is named as its template"),
    "the name of somebody else": (
        lambda run: run["metadata"]["annotations"].update({"ray-platform/created-by": "root"}),
        "is the name of the user who creates it",
    ),
    "no name of the author": (
        lambda run: run["metadata"]["annotations"].pop("ray-platform/created-by"),
        "is the name of the user who creates it",
    ),
    "another command of Ray": (
        lambda run: run["spec"].update(entrypoint="python other.py"),
        "a run has the entrypoint of its template",
    ),
    "code that the template does not let runs bring": (
        lambda run: run["metadata"]["annotations"].update({CODE_ANNOTATION: f"gcs://_ray_pkg_{'0' * 40}.zip"}),
        "if its template has localCode, and not otherwise",
    ),
    "an option that the template does not list": (
        lambda run: run["spec"].update(entrypoint="python train.py --trust-remote-code"),
        "this run gives another",
    ),
    "arguments without end": (_with_entrypoint(f"python train.py {'a' * 2**15}"), "is too long"),
    **{
        f"a shell: {argument}": (_with_entrypoint(f"python train.py{argument}"), "without characters that a shell")
        for argument in ("; id", " $(id)", " `id`", " 'a b'", ' "$HOME"', " a|b", " &", " >f", "\n id", " *", ".bak")
    },
}
"""What a Ray user may try with a run of a job template, and why it is refused."""


def _volumes(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the pod that submits. The code is the only one."""
    volumes: list[dict[str, Any]] = run["spec"]["submitterPodTemplate"]["spec"]["volumes"]
    return volumes


def _code_from(**source: Any) -> Attack:
    return lambda run: _volumes(run)[0].update(configMap=source)


OF_LOCAL_CODE: dict[str, tuple[Attack, str]] = {
    "as it is": (lambda _: None, ""),
    "the code of somebody else": (
        lambda run: _volumes(run)[0].update(configMap={"name": f"{run['metadata']['name']}.{b'alice'.hex()}"}),
        SAME,
    ),
    "another ConfigMap": (_code_from(name="kube-root-ca.crt"), SAME),
    "no ConfigMap": (_code_from(name=CODE_VOLUME), SAME),
    "further keys": (
        lambda run: _volumes(run)[0]["configMap"].update(items=[{"key": CODE_FILE, "path": "site.py"}]),
        SAME,
    ),
    "a Secret": (lambda run: _volumes(run).append({"name": "token", "secret": {"secretName": "training"}}), SAME),
    "a Secret in its place": (
        lambda run: _volumes(run).__setitem__(0, {"name": CODE_VOLUME, "secret": {"secretName": "training"}}),
        SAME,
    ),
    "a Secret beside it": (lambda run: _volumes(run)[0].update(secret={"secretName": "training"}), SAME),
    "no volume": (lambda run: _volumes(run).clear(), SAME),
    "no pod that submits": (lambda run: run["spec"].pop("submitterPodTemplate"), SAME),
    "another image of it": (
        lambda run: run["spec"]["submitterPodTemplate"]["spec"]["containers"][0].update(image="example.com/mine:1"),
        SAME,
    ),
    "an account of it": (
        lambda run: run["spec"]["submitterPodTemplate"]["spec"].update(serviceAccountName="training"),
        SAME,
    ),
    "a label of it": (
        lambda run: run["spec"]["submitterPodTemplate"].update(metadata={"labels": {"ray.io/cluster": "training"}}),
        SAME,
    ),
    "a folder of the image": (lambda run: run["spec"].update(runtimeEnvYAML="working_dir: /etc"), SAME),
    "no URI": (lambda run: run["metadata"]["annotations"].pop(CODE_ANNOTATION), "a run has Ray's URI of its code"),
    "the template's annotation": (
        lambda run: run["metadata"]["annotations"].update({CODE_ANNOTATION: "local"}),
        "a run has Ray's URI of its code",
    ),
}
"""What a Ray user may try with a run that brings its code, and why it is refused."""

OF_ONE_SIZE = f"{SAME} or one of its sizes (small, wide), labels and annotations included, except for arguments"


def _workers(run: dict[str, Any]) -> dict[str, Any]:
    group: dict[str, Any] = run["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    return group


def _as_size(size: str) -> SizeAttack:
    return lambda run, _: run["metadata"]["labels"].update({SIZE_LABEL: size})


def _workers_of(size: str | None) -> SizeAttack:
    return lambda run, sizes: run["spec"].update(rayClusterSpec=sizes[size]["rayClusterSpec"])


def _with_workers(**edit: Any) -> SizeAttack:
    return lambda run, _: _workers(run).update(edit)


def _with_two_groups(run: dict[str, Any], sizes: Specs) -> None:
    """The workers of another size beside those of the run's own."""
    groups = copy.deepcopy(sizes["small"]["rayClusterSpec"]["workerGroupSpecs"])
    run["spec"]["rayClusterSpec"]["workerGroupSpecs"] += [{**each, "groupName": "more"} for each in groups]


OF_SIZES: dict[str, tuple[str | None, SizeAttack, str]] = {
    "the template's own": (None, lambda *_: None, ""),
    "small": ("small", lambda *_: None, ""),
    "wide": ("wide", lambda *_: None, ""),
    "wide, said to be small": ("wide", _as_size("small"), OF_ONE_SIZE),
    "wide, said to be none": ("wide", lambda run, _: run["metadata"]["labels"].pop(SIZE_LABEL), OF_ONE_SIZE),
    "none, said to be small": (None, _as_size("small"), OF_ONE_SIZE),
    "the workers of another": ("small", _workers_of("wide"), OF_ONE_SIZE),
    "the workers of none": ("small", _workers_of(None), OF_ONE_SIZE),
    "the workers of two": ("wide", _with_two_groups, OF_ONE_SIZE),
    "the number of one and the CPUs of another": (None, _with_workers(replicas=1), OF_ONE_SIZE),
    "more workers": ("small", _with_workers(replicas=2), OF_ONE_SIZE),
    "a larger maximum": ("small", _with_workers(replicas=1, maxReplicas=99), OF_ONE_SIZE),
    "more workers of none": (None, _with_workers(replicas=9), OF_ONE_SIZE),
    "workers of several pods": ("small", _with_workers(numOfHosts=4), OF_ONE_SIZE),
    "workers with more CPUs": (
        "small",
        lambda run, _: _workers(run)["template"]["spec"]["containers"][0]["resources"]["limits"].update(cpu="64"),
        OF_ONE_SIZE,
    ),
    "workers that scale": (
        "small",
        lambda run, _: run["spec"]["rayClusterSpec"].update(enableInTreeAutoscaling=True),
        OF_ONE_SIZE,
    ),
    "one that does not exist": ("small", _as_size("huge"), OF_ONE_SIZE),
    "one without a name": ("small", _as_size(""), OF_ONE_SIZE),
    "one of a template without sizes": (
        "small",
        lambda run, _: run["metadata"]["labels"].update({TEMPLATE_LABEL: "finetune"}),
        SAME,
    ),
    "no list of sizes": ("small", lambda run, _: run["metadata"]["annotations"].pop(SIZES_ANNOTATION), OF_ONE_SIZE),
    "the name of another": (
        "small",
        lambda run, _: run["metadata"].update(name="sized-wide-x7k2p"),
        "a run is named as its template",
    ),
    "the name of none": (
        "small",
        lambda run, _: run["metadata"].update(name="sized-x7k2p"),
        "a run is named as its template",
    ),
    "of the size alone, without its template": (
        "small",
        lambda run, _: run["metadata"]["labels"].pop(TEMPLATE_LABEL),
        "rayClusterSpec is for those who may make RayClusters",
    ),
}
"""What a Ray user may try with the size of a run, by what the run says that it is, and why it is refused."""

ONLY_CODE = "you may only create the ConfigMap with the code of a run of yours"


def _metadata(**edit: Any) -> Attack:
    return lambda code: code["metadata"].update(edit)


def _owner(**edit: Any) -> Attack:
    return lambda code: code["metadata"]["ownerReferences"][0].update(edit)


CODE: dict[str, tuple[Attack, str]] = {
    "as it is": (lambda _: None, ""),
    "the largest": (lambda code: code["binaryData"].update({CODE_FILE: _encoded(LONGEST_CODE)}), ""),
    "too large": (lambda code: code["binaryData"].update({CODE_FILE: _encoded(LONGEST_CODE + 3)}), "at most 512 KiB"),
    "of somebody else's run": (
        lambda code: code["metadata"].update(name=f"{code['metadata']['name'].partition('.')[0]}.{b'alice'.hex()}"),
        ONLY_CODE,
    ),
    "of another name": (_metadata(name="volcano-scheduler-configmap"), ONLY_CODE),
    "of a generated name": (
        lambda code: code["metadata"].update(generateName=code["metadata"].pop("name")),
        ONLY_CODE,
    ),
    "of another run than its owner": (_owner(name="mine-aaaaa"), ONLY_CODE),
    "of no run": (_metadata(ownerReferences=[]), ONLY_CODE),
    "of two owners": (
        lambda code: code["metadata"]["ownerReferences"].append(
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "1"}
        ),
        ONLY_CODE,
    ),
    "of a pod": (_owner(apiVersion="v1", kind="Pod"), ONLY_CODE),
    "that keeps its run": (_owner(blockOwnerDeletion=True), ONLY_CODE),
    "of a controller": (_owner(controller=True), ONLY_CODE),
    "with a label for a controller": (_metadata(labels={"grafana_dashboard": "1"}), ONLY_CODE),
    "with an annotation": (_metadata(annotations={"k8s-sidecar-target-directory": "/etc"}), ONLY_CODE),
    "with a finalizer": (_metadata(finalizers=["example.com/never"]), ONLY_CODE),
    "that can be changed": (lambda code: code.pop("immutable"), ONLY_CODE),
    "with a text": (lambda code: code.update(data={"config.yaml": "a: 1"}), ONLY_CODE),
    "with another file": (lambda code: code["binaryData"].update({"other.zip": "UEs="}), ONLY_CODE),
    "without a file": (lambda code: code.pop("binaryData"), ONLY_CODE),
}
"""What a Ray user may try with the ConfigMap of a run's code, and why it is refused."""


def _encoded(size: int) -> str:
    return base64.b64encode(b"a" * size).decode()


def pod_of(run: dict[str, Any]) -> dict[str, Any]:
    """The pod of the head, in a RayJob."""
    pod: dict[str, Any] = run["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    return pod


def container_of(run: dict[str, Any]) -> dict[str, Any]:
    """Its container with Ray."""
    container: dict[str, Any] = pod_of(run)["containers"][0]
    return container


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


ONLY_SCALES = "this account may only scale the RayCluster of its pod"

GROUP = "/spec/workerGroupSpecs/0"

WORKER = "training-a100-1gpu-worker-abcde"
"""A worker of that group, as KubeRay names it."""

SUSPENDED = {"op": "add", "path": "/spec/suspend", "value": True}

Patches = dict[str, tuple[list[dict[str, Any]], str]]

OF_THE_HEAD: Patches = {
    "more workers": ([{"op": "replace", "path": f"{GROUP}/replicas", "value": 1}], ""),
    "one worker less": (
        [{"op": "add", "path": f"{GROUP}/scaleStrategy", "value": {"workersToDelete": [WORKER]}}],
        "",
    ),
    "another pod less": (
        [{"op": "add", "path": f"{GROUP}/scaleStrategy", "value": {"workersToDelete": ["ray-run-history-0"]}}],
        "pod ray-run-history-0 among workersToDelete is no worker of this group",
    ),
    "the head less": (
        [{"op": "add", "path": f"{GROUP}/scaleStrategy", "value": {"workersToDelete": ["training-head-abcde"]}}],
        "pod training-head-abcde among workersToDelete is no worker of this group",
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
    "no pod": ([SUSPENDED], ONLY_SCALES),
    "no token": ([{"op": "remove", "path": "/spec/authOptions"}], ONLY_SCALES),
    "another label": (
        [{"op": "add", "path": "/metadata/labels", "value": {"team": "other"}}],
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

OF_THE_IDLE_TERMINATION: Patches = {
    "no pod": ([SUSPENDED], ""),
    "no pod and no token": ([SUSPENDED, {"op": "remove", "path": "/spec/authOptions"}], ONLY_SCALES),
    "a note": ([{"op": "add", "path": "/metadata/annotations", "value": {"note": "idle"}}], ONLY_SCALES),
}

PATCHES = {
    (who, what): patch
    for who, patches in (("Head", OF_THE_HEAD), ("Idle termination", OF_THE_IDLE_TERMINATION))
    for what, patch in patches.items()
}
"""By account and title, each patch of a RayCluster and why it is refused."""


def inside(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object that contains the spec of a RayCluster."""
    job = {"entrypoint": "true", "submissionMode": "HTTPMode", "rayClusterSpec": spec}
    specs = {"RayJob": job, "RayCronJob": {"schedule": "@daily", "jobTemplate": job}}
    specs["RayService"] = {"serveConfigV2": "", "rayClusterConfig": spec}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "other"}, "spec": specs[kind]}
