"""Why the API server would refuse the pods of a rendered RayCluster, or Ray would not start in them. Pure functions.

The CRD's schema describes only the structure of pod templates, so without these rules the RayCluster is created and its
pods are not.
"""

import difflib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.ray_cluster.pods import HEAD_CONTAINER, WORKER_CONTAINER
from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.slots import without_memory
from core.pods import PodSecurityLevel
from core.problems import Path, Problem
from core.quantities import amount
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from kuberay.ray_start import is_gpu, problems_of_labels, problems_of_params
from kuberay.rules import problem

Body = Mapping[str, Any]

_HEAD: Path = ("spec", "headGroupSpec")
_OPTIONS: Path = ("spec", "autoscalerOptions")

_AUTOSCALER, _WAITER = "autoscaler", "wait-gcs-ready"
"""The containers that KubeRay adds to heads and workers (ray-operator/controllers/ray/common/pod.go)."""

_OF_AUTOSCALER = ("env", "envFrom", "volumeMounts", "resources", "securityContext", "imagePullPolicy")
"""The fields of autoscalerOptions that become those of its container (pod.go: mergeAutoscalerOverrides)."""

_ENDLESS = ("sleep infinity", "tail -f")

_LIKE = 0.6
"""How similar two names of containers must be to count as a misspelling (difflib's ratio)."""


def pod_problems(body: Body, level: PodSecurityLevel) -> Iterator[Problem]:
    """Problems of all pods of a RayCluster that is otherwise valid; paths in its body.

    `level`: the Pod Security level of its namespace; `privileged` if it is not known.
    """
    spec = body["spec"]
    options = spec.get("autoscalerOptions") or {} if spec.get("enableInTreeAutoscaling") else None
    yield from _of_pods(spec["headGroupSpec"]["template"], _HEAD, options, level)
    yield from _of_ray_start(spec, spec["headGroupSpec"], _HEAD)
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        path: Path = ("spec", "workerGroupSpecs", index)
        yield from _of_pods(group["template"], path, None, level)
        yield from _of_ray_start(spec, group, path)


def _of_ray_start(spec: Body, group: Body, path: Path) -> Iterator[Problem]:
    """What `ray start` refuses, or would offer without having it."""
    params, at = group.get("rayStartParams") or {}, (*path, "rayStartParams")
    # Overrides may remove the version.
    yield from problems_of_params(params, spec.get("rayVersion"), path == _HEAD, at)
    yield from problems_of_labels(group.get("labels") or {}, spec.get("rayVersion"), (*path, "labels"))
    yield from without_memory(group, path)
    offered = params.get("num-gpus", "")
    limits = (group["template"]["spec"]["containers"][0].get("resources") or {}).get("limits") or {}
    gpus = sum(int(amount(str(value))) for name, value in limits.items() if is_gpu(name))
    if offered.isdecimal() and int(offered) > gpus:
        message = (
            f"Ray would offer {offered} GPUs, and its container has {gpus}: remove it, so that Ray offers those of the "
            "container"
        )
        yield problem("ray-start-gpus", (*at, "num-gpus"), offered, message)


def due_to_defaults(settings: RayClusterSettings, problems: Sequence[Problem]) -> list[Problem]:
    """The problems of a cluster's pods, if it has no defaults: all of Pod Security as one, at the setting that is the
    reason. Its path is in the settings."""
    refused = [each for each in problems if each.rule == "pod-security"]
    if settings.pod_defaults != "none" or not refused:
        return []
    message = (
        f"podDefaults none leaves out what the tenant's podSecurity requires of {len(refused)} fields, so no pod would "
        "start: remove it, or set the tenant's podSecurity to baseline or privileged"
    )
    return [Problem(("podDefaults",), "none", message, "pod-security")]


def strictest_level(body: Body) -> PodSecurityLevel:
    """The strictest level of Pod Security that admits the pods of a RayCluster."""
    levels: tuple[PodSecurityLevel, ...] = ("restricted", "baseline")
    for level in levels:
        if not any(each.rule == "pod-security" for each in pod_problems(body, level)):
            return level
    return "privileged"


def _of_pods(template: Body, path: Path, options: Body | None, level: PodSecurityLevel) -> Iterator[Problem]:
    """The problems of a group's pods. Groups with the same template have the same ones, which are found once."""
    text = json.dumps([_without_values(template), options], sort_keys=True, default=str)
    for found in _found(text, "headGroupSpec" in path, level):
        at = found.path if found.path[:2] == _OPTIONS else (*path, "template", *found.path)
        yield replace(found, path=at)


def _without_values(template: Body) -> Body:
    """The template without the values of its variables, which no rule reads and which differ most between tenants."""
    spec = template["spec"]
    containers = {
        kind: [
            {**each, "env": [_without_value(variable) for variable in each["env"]]} if each.get("env") else each
            for each in spec[kind]
        ]
        for kind in ("containers", "initContainers")
        if spec.get(kind)
    }
    return {**template, "spec": {**spec, **containers}}


def _without_value(variable: Body) -> Body:
    return {**variable, "value": ""} if isinstance(variable.get("value"), str) else variable


@functools.lru_cache(maxsize=4096)
def _found(text: str, head: bool, level: PodSecurityLevel) -> tuple[Problem, ...]:
    template, options = json.loads(text)
    containers = template["spec"]["containers"]
    found = list(_of_ray(template["spec"], HEAD_CONTAINER if head else WORKER_CONTAINER))
    made, at = template, ("spec", "containers", len(containers))
    beside = []
    if options is not None and not any(each.get("name") == _AUTOSCALER for each in containers):
        added = {key: options[key] for key in _OF_AUTOSCALER if key in options}
        autoscaler = {"name": _AUTOSCALER, "image": _AUTOSCALER, **added}
        made = {**template, "spec": {**template["spec"], "containers": [*containers, autoscaler]}}
        beside = [(_OPTIONS, autoscaler)]
    reported = {each.path for each in found}
    for each in problems_of_template(made, ()):
        path = (*_OPTIONS, *each.path[3:]) if each.path[:3] == at else each.path
        # A missing field has no place in the stack file; what it is missing from does.
        path = path[:-1] if each.rule == "pod-field-missing" else path
        if path not in reported:
            found.append(replace(each, path=path))
    return (*found, *(() if found else violations(template, (), level, beside)))


def _of_ray(pod: Body, ray: str) -> Iterator[Problem]:
    """What the API server accepts, and KubeRay does not expect."""
    for index, container in enumerate(pod["containers"]):
        name, at = container.get("name", ""), ("spec", "containers", index)
        if index and name == ray:
            message = f"KubeRay starts Ray in the first container of a pod: move {ray!r} to the beginning"
            yield Problem((*at, "name"), name, message, "ray-container")
        elif index and not container.get("image") and difflib.get_close_matches(name, [ray], 1, _LIKE):
            message = f"container {name!r} has no image: did you mean {ray!r}? Else add its image"
            yield Problem(at, name, message, "ray-container")
        elif index and name == _AUTOSCALER and ray == HEAD_CONTAINER:
            yield _taken((*at, "name"), name)
    for index, container in enumerate(pod.get("initContainers") or ()):
        if container.get("name") == _WAITER and ray == WORKER_CONTAINER:
            yield _taken(("spec", "initContainers", index, "name"), _WAITER)
    yield from _endless(pod["containers"][0])


def _taken(path: Path, name: str) -> Problem:
    return Problem(path, name, f"KubeRay adds a container {name!r} itself: use another name", "ray-container")


def _endless(container: Body) -> Iterator[Problem]:
    """KubeRay appends `ray start` to the command of Ray's container unless it is in there (pod.go: BuildPod)."""
    command = " ".join([*(container.get("command") or ()), *(container.get("args") or ())])
    if "ray start" not in command and any(each in command for each in _ENDLESS):
        message = "KubeRay starts Ray after this command, which never ends: remove it"
        key = "command" if container.get("command") else "args"
        yield Problem(("spec", "containers", 0, key), None, message, "ray-container")
