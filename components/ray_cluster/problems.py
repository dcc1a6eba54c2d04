"""Why a rendered RayCluster would not run as its settings say: the API server would refuse its pods, Ray would not
start in them, or something in it undoes a setting. Pure functions.

The CRD's schema describes only the structure of pod templates, so without these rules the RayCluster is created and its
pods are not.
"""

import difflib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.logs import manifests as collector
from components.logs.settings import LogsSettings
from components.priority_classes.settings import of_kubernetes
from components.ray_cluster.manifests import Scheduling
from components.ray_cluster.pods import (
    RECONNECT_SECONDS,
    RECONNECT_TIMEOUT,
    TOKEN_VOLUME,
    Beside,
    RedisPlace,
    beside_head,
    log_sidecar,
)
from components.ray_cluster.settings import RayClusterSettings
from components.redis_gateway.manifests import METRICS_PORT, NAME, PORT, VOLUME
from components.tls.manifests import volumes
from core.body import ReadOnlyBody
from core.pods import PodSecurityLevel, kept
from core.problems import Path, Problem
from core.versions import image_version
from kuberay.features import ENABLED_ANNOTATION
from kuberay.offers import problems_of_nodes
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from kuberay.ports import head_ports
from kuberay.rules import groups_of
from kuberay.running import (
    HEAD_CONTAINER,
    LOGS,
    SHARED_MEMORY,
    WORKER_CONTAINER,
    problems_of_running,
    variable_of,
    without_certificates,
)

_HEAD: Path = ("spec", "headGroupSpec")
_OPTIONS: Path = ("spec", "autoscalerOptions")

_AUTOSCALER, _WAITER = "autoscaler", "wait-gcs-ready"
"""The containers that KubeRay adds to heads and workers (ray-operator/controllers/ray/common/pod.go)."""

_OF_AUTOSCALER = ("env", "envFrom", "volumeMounts", "resources", "securityContext", "imagePullPolicy")
"""The fields of autoscalerOptions that become those of its container (pod.go: mergeAutoscalerOverrides)."""

_ENDLESS = ("sleep infinity", "tail -f")

_LIKE = 0.6
"""How similar two names of containers must be to count as a misspelling (difflib's ratio)."""


def pod_problems(body: ReadOnlyBody, level: PodSecurityLevel) -> Iterator[Problem]:
    """Problems of all pods of a RayCluster that is otherwise valid; paths in its body.

    `level`: the Pod Security level of its namespace; `privileged` if it is not known.
    """
    spec = body["spec"]
    options = spec.get("autoscalerOptions") or {} if spec.get("enableInTreeAutoscaling") else None
    for path, group in groups_of(spec):
        yield from _of_pods(group["template"], path, options if path == _HEAD else None, level)
    yield from problems_of_nodes(spec, ports=head_ports(spec))


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


def strictest_level(body: ReadOnlyBody) -> PodSecurityLevel:
    """The strictest level of Pod Security that admits the pods of a RayCluster."""
    levels: tuple[PodSecurityLevel, ...] = ("restricted", "baseline")
    for level in levels:
        if not any(each.rule == "pod-security" for each in pod_problems(body, level)):
            return level
    return "privileged"


def _of_pods(
    template: ReadOnlyBody, path: Path, options: ReadOnlyBody | None, level: PodSecurityLevel
) -> Iterator[Problem]:
    """The problems of a group's pods. Groups with the same template have the same ones, which are found once."""
    text = json.dumps([_without_values(template), options], sort_keys=True, default=str)
    for found in _found(text, "headGroupSpec" in path, level):
        at = found.path if found.path[:2] == _OPTIONS else (*path, "template", *found.path)
        yield replace(found, path=at)


def _without_values(template: ReadOnlyBody) -> ReadOnlyBody:
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


def _without_value(variable: ReadOnlyBody) -> ReadOnlyBody:
    plain = isinstance(variable.get("value"), str) and "valueFrom" not in variable
    return {**variable, "value": ""} if plain else variable


@functools.lru_cache(maxsize=4096)
def _found(text: str, head: bool, level: PodSecurityLevel) -> tuple[Problem, ...]:
    template, options = json.loads(text)
    containers = template["spec"]["containers"]
    found = list(_of_ray(template["spec"], HEAD_CONTAINER if head else WORKER_CONTAINER))
    volumes = _with_volumes(template["spec"].get("volumes") or (), logs=options is not None)
    made, at = {**template, "spec": {**template["spec"], "volumes": volumes}}, ("spec", "containers", len(containers))
    beside = []
    if options is not None and not any(each.get("name") == _AUTOSCALER for each in containers):
        added = {key: options[key] for key in _OF_AUTOSCALER if key in options}
        autoscaler = {"name": _AUTOSCALER, "image": _AUTOSCALER, **added}
        made["spec"]["containers"] = [*containers, autoscaler]
        beside = [(_OPTIONS, autoscaler)]
    reported = {each.path for each in found}
    for each in problems_of_template(made, ()):
        path = (*_OPTIONS, *each.path[3:]) if each.path[:3] == at else each.path
        # A missing field has no place in the stack file; what it is missing from does.
        path = path[:-1] if each.rule == "pod-field-missing" else path
        if path not in reported:
            found.append(replace(each, path=path))
    return (*found, *(() if found else violations(template, (), level, beside)))


def _with_volumes(given: Sequence[ReadOnlyBody], *, logs: bool) -> list[ReadOnlyBody]:
    """With those that KubeRay adds, which other containers may mount."""
    names = {each.get("name") for each in given}
    added = (SHARED_MEMORY, *((LOGS,) if logs else ()))
    return [*given, *({"name": name, "emptyDir": {}} for name in added if name not in names)]


def _of_ray(pod: ReadOnlyBody, ray: str) -> Iterator[Problem]:
    """What the API server accepts, and KubeRay does not expect."""
    for index, container in enumerate(pod["containers"]):
        name, at = container.get("name", ""), ("spec", "containers", index)
        if (
            index
            and name != ray  # running.py has it
            and not container.get("image")
            and (name in (HEAD_CONTAINER, WORKER_CONTAINER) or difflib.get_close_matches(name, [ray], 1, _LIKE))
        ):
            message = f"container {name!r} has no image: did you mean {ray!r}? Else add its image"
            yield Problem(at, name, message, "ray-container")
        elif index and container.get("image") == pod["containers"][0].get("image") and not _runs_something(container):
            message = (
                f"container {name!r} has Ray's image and no command, so that it ends at once: did you mean {ray!r}? "
                "Else add a command"
            )
            yield Problem(at, name, message, "ray-container")
        elif index and name == _AUTOSCALER and ray == HEAD_CONTAINER:
            yield _taken((*at, "name"), name)
    for index, container in enumerate(pod.get("initContainers") or ()):
        if container.get("name") == _WAITER and ray == WORKER_CONTAINER:
            yield _taken(("spec", "initContainers", index, "name"), _WAITER)
    yield from _endless(pod["containers"][0])


def _runs_something(container: ReadOnlyBody) -> bool:
    return bool(container.get("command") or container.get("args"))


def _taken(path: Path, name: str) -> Problem:
    return Problem(path, name, f"KubeRay adds a container {name!r} itself: use another name", "ray-container")


def _endless(container: ReadOnlyBody) -> Iterator[Problem]:
    """KubeRay appends `ray start` to the command of Ray's container unless it is in there (pod.go: BuildPod)."""
    command = " ".join([*(container.get("command") or ()), *(container.get("args") or ())])
    if "ray start" not in command and any(each in command for each in _ENDLESS):
        message = "KubeRay starts Ray after this command, which never ends: remove it"
        key = "command" if container.get("command") else "args"
        yield Problem(("spec", "containers", 0, key), None, message, "ray-container")


def without_slots(body: ReadOnlyBody) -> Iterator[Problem]:
    """The problem of a cluster that scales and may never have a worker, with a head that runs no task.

    One that does not scale may have no workers for a while.
    """
    spec = body["spec"]
    groups, offered = spec.get("workerGroupSpecs") or (), spec["headGroupSpec"].get("rayStartParams") or {}
    idle = offered.get("num-cpus") == offered.get("num-gpus") == "0" and "resources" not in offered
    never = groups and not any(group.get("maxReplicas", 1) for group in groups)
    if not (idle and never and spec.get("enableInTreeAutoscaling")):
        return
    message = (
        "no worker may ever run (maxReplicas of each group is 0), and the head offers no CPU, so that nothing runs: "
        "raise one, or the budget or quota that bounds it"
    )
    yield Problem(("spec", "workerGroupSpecs", 0, "maxReplicas"), 0, message, "no-worker-ever")


def undone(settings: RayClusterSettings, body: ReadOnlyBody) -> Iterator[Problem]:
    """Variables and images of a rendered RayCluster that contradict its settings; paths in its body."""
    spec = body["spec"]
    for path, group in groups_of(spec):
        ray, at = group["template"]["spec"]["containers"][0], (*path, "template", "spec", "containers", 0)
        yield from _other_version(settings, ray, at)
        yield from without_certificates(group, path)
        name = group["template"]["spec"].get("priorityClassName", "")
        yield from of_kubernetes((*path, "template", "spec", "priorityClassName"), name)
        yield from kept(group["template"], (*path, "template"))
        if seconds := group["template"]["spec"].get("activeDeadlineSeconds"):
            message = "ends the pod then, with all that runs in it: remove it (a job has an activeDeadlineSeconds)"
            yield Problem((*path, "template", "spec", "activeDeadlineSeconds"), seconds, message, "pod-ends")
    if options := spec.get("autoscalerOptions"):
        yield from _other_version(settings, options, ("spec", "autoscalerOptions"))
    yield from problems_of_running(spec, body["metadata"])
    yield from _without_redis(body)


def _without_redis(body: ReadOnlyBody) -> Iterator[Problem]:
    """Fault tolerance by the annotation alone, which has no Redis."""
    annotated, spec = (body["metadata"].get("annotations") or {}).get(ENABLED_ANNOTATION, ""), body["spec"]
    address = variable_of(_HEAD, spec["headGroupSpec"], "RAY_REDIS_ADDRESS")
    if annotated.lower() == "true" and "gcsFaultToleranceOptions" not in spec and not address:
        message = "without the address of a Redis nothing is kept: remove it, and set faultTolerance if that is meant"
        yield Problem(("metadata", "annotations", ENABLED_ANNOTATION), annotated, message, "redis-annotation")


def _other_version(settings: RayClusterSettings, container: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    image = container.get("image") or ""
    tagged = image_version(image)
    if settings.verify_image_tag and tagged not in (None, settings.ray_version):
        message = (
            f"rayVersion is {settings.ray_version!r} and image {image!r} has Ray {tagged}: use the image of "
            f"{settings.ray_version}, or set verifyImageTag to false if it does have that Ray"
        )
        yield Problem((*path, "image"), image, message, "image-version")


_OF_KUBERAY = {"redis-annotation", "redis-address-env", "redis-password", "redis-username", "redis-namespace"}
"""KubeRay's own rules on settings that conflict with its options (kuberay/features.py)."""

_VOLUMES = {
    TOKEN_VOLUME: "the token of Ray's autoscaler",
    VOLUME: "the password of Redis",
    NAME: "the program of the Redis gateway",
    LOGS: "the log files of Ray",
    **dict.fromkeys((collector.NAME, collector.STATE_VOLUME, collector.CA_VOLUME), "the files of the log collector"),
    **{each["name"]: "the certificates of the cluster" for each in volumes("")},
}
"""Volumes that the stack adds to pods, with their content."""


def reworded(settings: RayClusterSettings, problem: Problem, body: ReadOnlyBody) -> Problem:
    """A problem from KubeRay's rules, in terms of the stack file if it is about a part that the stack adds."""
    match problem.path:
        case ("spec", "workerGroupSpecs", int(index), "template") if problem.rule == "required-field":
            return _no_such_group(body["spec"]["workerGroupSpecs"], index, problem)
        case ("spec", *above, "volumes", int()) if problem.rule == "duplicate-item":
            return _name_of_ours(_at(body["spec"], above)["volumes"], problem)
    if not settings.fault_tolerance or problem.rule not in _OF_KUBERAY:
        return problem
    message = "conflicts with faultTolerance, which sets all that Ray needs for Redis: remove it"
    return replace(problem, message=message)


def _at(body: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        body = body[step]
    return body


def _name_of_ours(named: Sequence[Any], problem: Problem) -> Problem:
    """Two volumes of a name. The stack adds its own after the others, so the first one is to be renamed."""
    name = problem.value.get("name")
    if not isinstance(name, str) or name not in _VOLUMES:
        return problem
    first = next(index for index, each in enumerate(named) if isinstance(each, Mapping) and each.get("name") == name)
    message = f"{name!r} is the volume with {_VOLUMES[name]}, which the stack adds: use another name"
    return replace(problem, path=(*problem.path[:-1], first, "name"), value=name, message=message)


def _no_such_group(groups: Sequence[Any], index: int, problem: Problem) -> Problem:
    """A group that exists only in overrides, and there in part."""
    name = groups[index].get("groupName")
    whole = [each for each in groups if isinstance(each, Mapping) and "template" in each]
    names = [str(each.get("groupName")) for each in whole]
    near = difflib.get_close_matches(str(name), names, 1)
    advice = f"did you mean {near[0]!r}? Else" if near else f"use one of {', '.join(names)}, or" if names else "else"
    message = f"the cluster has no worker group {name!r} to merge this into: {advice} add the template of a new group"
    return replace(problem, path=(*problem.path[:3], "groupName"), value=name, message=message)


def logs_problems(settings: RayClusterSettings, logs: LogsSettings | None, body: ReadOnlyBody) -> Iterator[Problem]:
    """Parts of a rendered RayCluster by which its logs would not be collected; paths in its body."""
    if logs is None:
        return
    expected = log_sidecar(settings, logs)
    for path, group in groups_of(body["spec"]):
        folder = group["rayStartParams"].get("temp-dir", collector.RAY_FOLDER)
        if folder != collector.RAY_FOLDER:
            message = f"logs are read from {collector.RAY_FOLDER}, and Ray would write them elsewhere: remove it"
            yield Problem((*path, "rayStartParams", "temp-dir"), folder, message, "logs-elsewhere")
        yield from _changed_for_logs((*path, "template", "spec"), group["template"]["spec"], expected)


def _changed_for_logs(path: Path, pod: ReadOnlyBody, expected: Beside) -> Iterator[Problem]:
    """Changes by a pod template to what the collector needs."""
    named: dict[str, tuple[dict[str, Any], ...]] = {
        "initContainers": expected.init_containers,
        "volumes": expected.volumes,
    }
    for kind, ours in named.items():
        names = [each["name"] for each in ours]
        present = [(at, each) for at, each in enumerate(pod.get(kind) or ()) if each.get("name") in names]
        for at, each in present:
            if each not in ours:
                message = (
                    f"{each['name']!r} is that of the log collector: use another name, or change the collector in "
                    "ray-platform:logs"
                )
                yield Problem((*path, kind, at), each["name"], message, "logs-changed")
    for at, mount in enumerate(pod["containers"][0].get("volumeMounts") or ()):
        if mount.get("mountPath", "").rstrip("/") == collector.RAY_FOLDER and mount.get("name") != LOGS:
            where = (*path, "containers", 0, "volumeMounts", at)
            message = f"Ray and the collector share {collector.RAY_FOLDER} by another volume: mount this one elsewhere"
            yield Problem(where, mount.get("name"), message, "logs-elsewhere")


_STORAGE_NAMESPACE = "RAY_external_storage_namespace"
"""KubeRay does not override it, and then cleans up another namespace (pod.go: configureGCSFaultTolerance)."""


def redis_problems(settings: RayClusterSettings, place: RedisPlace | None, body: ReadOnlyBody) -> Iterator[Problem]:
    """Problems of a rendered RayCluster that KubeRay would accept; paths in its body."""
    if not settings.fault_tolerance or place is None:
        return
    spec = body["spec"]
    yield from _gateway(settings, place, spec["headGroupSpec"]["template"]["spec"])
    if found := variable_of(_HEAD, spec["headGroupSpec"], _STORAGE_NAMESPACE):
        message = "the stack creates a unique storage namespace for each RayCluster: remove the variable"
        yield Problem(found[0], found[1], message, "redis-namespace")
    yield from _reconnect_timeouts(spec)


def _gateway(settings: RayClusterSettings, place: RedisPlace, pod: ReadOnlyBody) -> Iterator[Problem]:
    """Changes by a pod template to the containers, volumes and ports that the head has for Redis."""
    made, at = beside_head(settings, place), (*_HEAD, "template", "spec")
    reserved = [("initContainers", NAME, made.init_containers)]
    reserved += [("volumes", each["name"], (each,)) for each in made.volumes]
    for kind, name, expected in reserved:
        present = [(index, each) for index, each in enumerate(pod.get(kind) or ()) if each.get("name") == name]
        if expected and [each for _, each in present] != list(expected):
            where = (*at, kind, present[-1][0]) if present else (*at, kind)
            message = (
                f"{name!r} of the head's {kind} is reserved for faultTolerance: use another name, or configure the "
                "gateway in redis.gateway"
            )
            yield Problem(where, name, message, "redis-gateway-changed")
    if place.gateway is None:
        return
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(pod.get(kind) or ()):
            if kind == "containers" and container.get("name") == NAME:
                message = f"the name {NAME!r} is that of the gateway beside the head: use another"
                yield Problem((*at, kind, index, "name"), NAME, message, "redis-gateway-changed")
            for position, port in enumerate(container.get("ports") or ()):
                if container.get("name") != NAME and port.get("containerPort") in (PORT, METRICS_PORT):
                    number = port["containerPort"]
                    message = f"port {number} of the head's pod is that of the Redis gateway: use another"
                    yield Problem(
                        (*at, kind, index, "ports", position, "containerPort"), number, message, "redis-gateway-port"
                    )


def _reconnect_timeouts(spec: ReadOnlyBody) -> Iterator[Problem]:
    """Worker timeouts that are not longer than the head's. Such workers and their tasks would end while the head
    restarts (kuberay#1036)."""
    in_head = variable_of(_HEAD, spec["headGroupSpec"], RECONNECT_TIMEOUT)
    of_head = _seconds(in_head[1]) if in_head else RECONNECT_SECONDS["head"]
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        in_group = variable_of(("spec", "workerGroupSpecs", index), group, RECONNECT_TIMEOUT)
        of_workers = _seconds(in_group[1]) if in_group else RECONNECT_SECONDS["worker"]
        where = in_group or in_head
        if where and of_head is not None and of_workers is not None and of_workers <= of_head:
            message = (
                f"{RECONNECT_TIMEOUT} is {of_head} in the head and {of_workers} in worker group "
                f"{group['groupName']!r}, whose workers would end while the head restarts: remove it (the defaults are "
                f"{RECONNECT_SECONDS['head']} and {RECONNECT_SECONDS['worker']}), or set more for workers than for the "
                "head"
            )
            yield Problem(where[0], where[1], message, "redis-reconnect-order")
            return


def _seconds(value: str) -> int | None:
    """None: no number, or a value that is known only in the pod."""
    return int(value) if value.isascii() and value.isdigit() else None


_MOST_POD_SETS = 18
"""Of a Workload of Kueue (kueue, pkg/controller/jobframework/constants.go: MaxPodSets)."""


def unguarded_gang(settings: RayClusterSettings, body: ReadOnlyBody) -> Iterator[Problem]:
    """Worker groups that can scale although `gang` is `all`; the path is in the settings.

    KubeRay's gang is the head and minReplicas of each group. Raising minReplicas to maxReplicas implicitly would start
    every worker of every size at once. That is seldom intended, so the settings have to do it.
    """
    if settings.gang != "all" or not body["spec"].get("enableInTreeAutoscaling"):
        return
    changing = [
        f"{group['groupName']} {group.get('minReplicas') or 0} to {'any' if most is None else most}"
        for group in body["spec"].get("workerGroupSpecs") or ()
        if (most := group.get("maxReplicas")) != (group.get("minReplicas") or 0)
    ]
    if changing:
        message = (
            f"gang all starts every worker together, and the autoscaler adds some later ({', '.join(changing)}): set "
            "minReplicas and maxReplicas of each group to the same number, or autoscaling to false and replicas"
        )
        yield Problem(("gang",), "all", message, "gang-in-part")


def not_with_kueue(
    settings: RayClusterSettings, scheduling: Scheduling, body: ReadOnlyBody, others: int = 1
) -> Iterator[Problem]:
    """Settings that Kueue's webhook refuses (kueue, pkg/controller/jobs/raycluster/common.go: ValidateCreate), and
    those that Kueue does not have; paths are in the settings. `others`: pod sets besides the worker groups, which are
    the head and a job's submitter.
    """
    if settings.network_topology:
        yield _not_with_kueue("networkTopology", "is only for Volcano: remove it, or set scheduler to volcano")
    if scheduling.queue is None:
        return
    if settings.idle_termination_options:
        yield _not_with_kueue(
            "idleTerminationOptions",
            "Kueue decides whether a RayCluster in a queue is suspended: remove it, or use a job, whose cluster ends",
        )
    names = [group["groupName"] for group in body["spec"].get("workerGroupSpecs") or ()]
    if len(names) > (most := _MOST_POD_SETS - others):
        yield _not_with_kueue(
            "workers", f"Kueue supports at most {most} worker groups here, and there are {len(names)}: use fewer"
        )
    if "head" in names:
        yield _not_with_kueue("workerGroups", "Kueue calls the head's pod 'head': give the worker group another name")


def _not_with_kueue(key: str, message: str) -> Problem:
    return Problem((key,), None, message, "not-with-kueue")
