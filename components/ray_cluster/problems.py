"""Why a rendered RayCluster would not run as its settings say: the API server would refuse its pods, Ray would not
start in them, or something in it undoes a setting. Pure functions.

The CRD's schema describes only the structure of pod templates, so without these rules the RayCluster is created and its
pods are not.
"""

import difflib
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from components.logs import manifests as collector
from components.logs.settings import LogsSettings
from components.priority_classes.settings import of_kubernetes
from components.ray_cluster.manifests import Scheduling, head_ports
from components.ray_cluster.pods import (
    HEAD_CONTAINER,
    RECONNECT_SECONDS,
    RECONNECT_TIMEOUT,
    TOKEN_VOLUME,
    WORKER_CONTAINER,
    Beside,
    RedisPlace,
    beside_head,
    log_sidecar,
)
from components.ray_cluster.settings import RayClusterSettings
from components.redis_gateway.manifests import METRICS_PORT, NAME, PORT, VOLUME
from components.storage.settings import PROGRAMS, PYTHON, hides
from components.tls.manifests import volumes
from core.body import ReadOnlyBody
from core.pods import PodSecurityLevel
from core.problems import Path, Problem
from core.versions import image_version
from kuberay.features import ENABLED_ANNOTATION
from kuberay.offers import problems_of_nodes
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from kuberay.rules import groups_of

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


def _of_ray(pod: ReadOnlyBody, ray: str) -> Iterator[Problem]:
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


_OVERWRITTEN = (
    "FQ_RAY_IP",
    "KUBERAY_GEN_RAY_START_CMD",
    "RAY_CLOUD_INSTANCE_ID",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_IP",
    "RAY_NODE_TYPE_NAME",
    "RAY_USAGE_STATS_EXTRA_TAGS",
)
"""Variables that KubeRay appends after those of the template, so that its own apply
(ray-operator/controllers/ray/common/pod.go: setContainerEnvVars)."""

_UNDOING = {
    "RAY_ADDRESS": "Ray's processes in the pod would connect to that cluster",
    "RAY_PORT": "Ray's processes in the pod would look for the head at another port",
    "CUDA_VISIBLE_DEVICES": "Ray sets it for each task, and would hide GPUs that it offers",
    "NVIDIA_VISIBLE_DEVICES": "it decides which GPUs of the node the container sees, also without a limit on them",
}
"""Variables that have an effect, and what it undoes."""

_HARMLESS = {"NVIDIA_VISIBLE_DEVICES": ("void", "none", ""), "CUDA_VISIBLE_DEVICES": ("",)}
"""Values that only hide GPUs."""

_MODE = "RAY_AUTH_MODE"

OWN_COMMAND = "ray.io/overwrite-container-cmd"
"""Annotation of a RayCluster whose containers start Ray themselves (ray-operator/controllers/ray/common/pod.go)."""


def undone(settings: RayClusterSettings, body: ReadOnlyBody) -> Iterator[Problem]:
    """Variables and images of a rendered RayCluster that contradict its settings; paths in its body."""
    spec = body["spec"]
    for path, group in groups_of(spec):
        ray, at = group["template"]["spec"]["containers"][0], (*path, "template", "spec", "containers", 0)
        for index, variable in enumerate(ray.get("env") or ()):
            if message := _undoing(spec, variable):
                yield Problem((*at, "env", index, "name"), variable["name"], message, "env-undoes")
        yield from _other_version(settings, ray, at)
        yield from _not_started(body, group, path)
        yield from _without_certificates(group, path)
        yield from _of_the_system(group, path)
        yield from _hidden(ray, at)
    if options := spec.get("autoscalerOptions"):
        yield from _other_version(settings, options, ("spec", "autoscalerOptions"))
    yield from _two_pythons(spec)
    yield from _without_redis(body)


_PYTHON_TAG = re.compile(r"-py3(\d+)(?![0-9])")
"""Part of the tags of Ray's images (docs.ray.io, Installing Ray: Docker images)."""


def _two_pythons(spec: ReadOnlyBody) -> Iterator[Problem]:
    """Workers of another Python than the head, which Ray refuses (python/ray/_private/utils.py: check_version_info)."""
    head: str | None = None
    for path, group in groups_of(spec):
        image = group["template"]["spec"]["containers"][0].get("image") or ""
        found = _PYTHON_TAG.search(image)
        head = head or (found[1] if found and path == _HEAD else None)
        if head and found and found[1] != head:
            message = f"has Python 3.{found[1]}, and the head's image 3.{head}: Ray refuses such workers, so use one"
            yield Problem((*path, "template", "spec", "containers", 0, "image"), image, message, "image-version")


def _without_redis(body: ReadOnlyBody) -> Iterator[Problem]:
    """Fault tolerance by the annotation alone, which has no Redis."""
    annotated, spec = (body["metadata"].get("annotations") or {}).get(ENABLED_ANNOTATION, ""), body["spec"]
    address = _variable(_HEAD, spec["headGroupSpec"], "RAY_REDIS_ADDRESS")
    if annotated.lower() == "true" and "gcsFaultToleranceOptions" not in spec and not address:
        message = "without the address of a Redis nothing is kept: remove it, and set faultTolerance if that is meant"
        yield Problem(("metadata", "annotations", ENABLED_ANNOTATION), annotated, message, "redis-annotation")


def _not_started(body: ReadOnlyBody, group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Ray's container whose command KubeRay leaves to the pod template, which has none."""
    ray = group["template"]["spec"]["containers"][0]
    places = {("metadata",): body["metadata"], (*path, "template", "metadata"): group["template"].get("metadata") or {}}
    for at, metadata in places.items() if not ray.keys() & {"command", "args"} else ():
        if (metadata.get("annotations") or {}).get(OWN_COMMAND) == "true":
            message = (
                "KubeRay does not start Ray then, and nothing else does: remove it, or give all containers a command"
            )
            yield Problem((*at, "annotations", OWN_COMMAND), "true", message, "own-command")
            return


_ENCRYPTS, _CERTIFICATE = "RAY_USE_TLS", "RAY_TLS_SERVER_CERT"


def _without_certificates(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Ray that is told to encrypt, and ends without a certificate (python/ray/_private/tls_utils.py)."""
    found = _variable(path, group, _ENCRYPTS)
    if found and found[1].lower() in ("1", "true") and not _variable(path, group, _CERTIFICATE):
        message = f"Ray would not start without {_CERTIFICATE}: remove it, and set tls of the cluster if that is meant"
        yield Problem((*found[0], "name"), _ENCRYPTS, message, "env-undoes")


def _hidden(ray: ReadOnlyBody, at: Path) -> Iterator[Problem]:
    """Volumes over the folders that Ray's container starts from."""
    for index, mount in enumerate(ray.get("volumeMounts") or ()):
        place = mount.get("mountPath", "").rstrip("/") or "/"
        of_ray = "rayproject/" in str(ray.get("image", "")) and hides(place, PYTHON)
        if (of_ray or place in ("/", "/proc", "/sys", *PROGRAMS)) and "subPath" not in mount:
            message = f"the volume would hide {place} of the image, and Ray would not start: mount it elsewhere"
            yield Problem((*at, "volumeMounts", index, "mountPath"), mount["mountPath"], message, "hidden-folder")


def _of_the_system(group: ReadOnlyBody, path: Path) -> Iterator[Problem]:
    """Pods of a class that evicts all others of the cluster, or with a priority of none (plugin Priority)."""
    name, number = group["template"]["spec"].get("priorityClassName", ""), group["template"]["spec"].get("priority")
    if number is not None:
        message = (
            "the API server sets it from the class, and refuses pods with another: remove it, set a priorityClassName"
        )
        yield Problem((*path, "template", "spec", "priority"), number, message, "priority-name")
    yield from of_kubernetes((*path, "template", "spec", "priorityClassName"), name)


def _undoing(spec: ReadOnlyBody, variable: ReadOnlyBody) -> str | None:
    name, value = variable["name"], variable.get("value", "")
    if name in _OVERWRITTEN:
        return f"KubeRay sets {name} itself, and its value applies: remove it"
    if name == _MODE and (mode := (spec.get("authOptions") or {}).get("mode")) not in (None, value):
        return f"{_MODE} {value!r} would undo authOptions, whose mode is {mode}: remove it, or change authOptions.mode"
    if name in _UNDOING and ("valueFrom" in variable or value not in _HARMLESS.get(name, ())):
        return f"{_UNDOING[name]}: remove it"
    return None


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
    collector.RAY_VOLUME: "the log files of Ray",
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
        if mount.get("mountPath", "").rstrip("/") == collector.RAY_FOLDER and mount.get("name") != collector.RAY_VOLUME:
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
    if found := _variable(_HEAD, spec["headGroupSpec"], _STORAGE_NAMESPACE):
        message = "the stack creates a unique storage namespace for each RayCluster: remove the variable"
        yield Problem(found[0], found[1], message, "redis-namespace")
    yield from _reconnect_timeouts(spec)


def _gateway(settings: RayClusterSettings, place: RedisPlace, pod: ReadOnlyBody) -> Iterator[Problem]:
    """Changes by a pod template to the containers, volumes and ports that the head has for Redis."""
    made, at = beside_head(settings, place), (*_HEAD, "template", "spec")
    for kind, expected, name in (
        ("initContainers", made.init_containers, NAME),
        ("volumes", made.volumes, VOLUME),
    ):
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
    in_head = _variable(_HEAD, spec["headGroupSpec"], RECONNECT_TIMEOUT)
    of_head = _seconds(in_head[1]) if in_head else RECONNECT_SECONDS["head"]
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        in_group = _variable(("spec", "workerGroupSpecs", index), group, RECONNECT_TIMEOUT)
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


def _variable(path: Path, group: ReadOnlyBody, name: str) -> tuple[Path, str] | None:
    """The path of an environment variable in Ray's container of a group, and its value."""
    for index, variable in enumerate(group["template"]["spec"]["containers"][0].get("env") or ()):
        if variable["name"] == name:
            return (*path, "template", "spec", "containers", 0, "env", index), str(variable.get("value", ""))
    return None


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
