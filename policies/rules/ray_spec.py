"""Specs that KubeRay refuses, with an event only. It then creates and changes nothing of the RayCluster."""

import re

from core.pods import RAY
from core.types import Settings
from policies.cel import ALWAYS, GROUPS, HEAD, HEAD_CONTAINER, SCALES, CelCheck, of_ray
from policies.rule import Severity, Violations, rule
from policies.search import is_foreign
from policies.values import Object
from policies.walk import RayCluster, ray_clusters

_VALIDATION = "kuberay ray-operator/controllers/ray/utils/validation.go"
_CLUSTERS = ("RayCluster", "RayJob", "RayService", "RayCronJob")
_NAMED = ("RayCluster", "RayJob", "RayService")


@rule(
    "ray-restart-never",
    Severity.HIGH,
    what="Pods that Ray's autoscaler v2 manages are not restarted by Kubernetes.",
    why="KubeRay refuses the RayCluster, and only an event reports it.",
    source=f"{_VALIDATION}: ValidateRayClusterSpec",
    fix="Set restartPolicy: Never, or remove it.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"!({SCALES} && ray.?autoscalerOptions.?version.orValue('') == 'v2') || "
        "variables.rayPods.all(pod, pod.spec.?restartPolicy.orValue('Never') == 'Never')"
    ),
)
def restart_never(cluster: RayCluster) -> Violations:
    """Requires `Never` or no restartPolicy if the cluster scales with v2."""
    if cluster.scales and cluster.spec.at("autoscalerOptions", "version").text == "v2":
        for pod in cluster.pods():
            policy = pod.spec.at("restartPolicy")
            if policy.is_set and policy.text != "Never":
                yield policy.wrong(f"is {policy.shown()}")


@rule(
    "ray-start-params",
    Severity.HIGH,
    what="A group's resources for Ray are set in one place.",
    why="KubeRay refuses a RayCluster that sets it in rayStartParams and in resources or labels, with an event only.",
    source=f"{_VALIDATION}: validateRayGroupResources, validateRayGroupLabels",
    fix="Keep one of them.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"([?{HEAD}] + {GROUPS}).all(group, !group.?rayStartParams[?'labels'].hasValue()"
        " && (!group.?resources.hasValue() || ['num-cpus', 'num-gpus', 'memory', 'resources']"
        ".all(key, !group.?rayStartParams[?key].hasValue())))"
    ),
)
def start_params(cluster: RayCluster) -> Violations:
    """Rejects in `rayStartParams`: resources if the group sets `resources`, and `labels` always."""
    for pod in cluster.pods():
        assert pod.group is not None
        params = pod.group.at("rayStartParams")
        if params.at("labels").is_set:
            yield params.at("labels").wrong("is not allowed: set labels of the group")
        if pod.group.at("resources").is_set:
            for key in ("num-cpus", "num-gpus", "memory", "resources"):
                if params.at(key).is_set:
                    yield params.at(key).wrong("is not allowed beside the group's resources")


class NameLengths(Settings):
    """Options of ray-name-length."""

    cluster: int = 53
    """Characters of a RayCluster's name (KubeRay's own limit)."""

    others: int = 47
    """Characters of the name of a RayJob or RayService."""


def _name_length_in_cel(options: NameLengths) -> str:
    longest = f"(request.kind.kind == 'RayCluster' ? {options.cluster} : {options.others})"
    return f"object.metadata.name.size() <= {longest} && object.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')"


@rule(
    "ray-name-length",
    Severity.HIGH,
    what="Names leave room for what KubeRay adds to them.",
    why="KubeRay refuses longer ones, and those that are not a DNS-1035 label, with an event only.",
    source=f"{_VALIDATION}: ValidateRayClusterMetadata",
    fix="Choose a shorter name of lower-case letters, digits and hyphens that begins with a letter.",
    cel=CelCheck(tuple((RAY, kind) for kind in _NAMED), _name_length_in_cel),
)
def name_length(owner: Object, options: NameLengths) -> Violations:
    """Requires a DNS-1035 label that is not longer than the option, also of a RayJob on an existing RayCluster."""
    if owner.kind not in _NAMED and not (is_foreign(owner) and any(ray_clusters(owner))):
        return
    name_node = owner.root.at("metadata", "name")
    longest = options.others if owner.kind in ("RayJob", "RayService") else options.cluster
    name = name_node.given or ""
    if len(name) > longest:
        yield name_node.wrong(f"{name_node.shown()} has {len(name)} characters; at most {longest} are allowed")
    elif name and not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name):
        yield name_node.wrong(f"{name_node.shown()} is not a DNS-1035 label")


@rule(
    "ray-group-names",
    Severity.HIGH,
    what="Worker groups have names of their own.",
    why="KubeRay refuses the RayCluster, with an event only.",
    source=f"{_VALIDATION}: ValidateRayClusterSpec",
    fix="Give each a groupName.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"{GROUPS}.all(group, has(group.groupName) && "
        "ray.workerGroupSpecs.exists_one(other, other.?groupName.orValue('') == group.groupName))"
    ),
)
def group_names(cluster: RayCluster) -> Violations:
    """Every group has a name, and no two have the same."""
    seen: set[str | None] = {None}
    for group in cluster.spec.at("workerGroupSpecs").items():
        name = group.at("groupName")
        if name.text in seen:
            yield name.wrong(f"{name.shown()} is not unique" if name.is_set else "is not set")
        seen.add(name.text)


@rule(
    "ray-replica-bounds",
    Severity.HIGH,
    what="Worker groups have a maximum of workers, and bounds that agree.",
    why="KubeRay refuses bounds that cross, and starts no more than maxReplicas. Its default is 2^31 - 1: no limit.",
    source=f"{_VALIDATION}: ValidateRayClusterSpec; utils/util.go: GetWorkerGroupDesiredReplicas",
    fix="Set maxReplicas to at least minReplicas and replicas.",
    kinds=_CLUSTERS,
    cel=of_ray(
        f"{GROUPS}.all(group, has(group.maxReplicas) ? group.?minReplicas.orValue(0) <= group.maxReplicas"
        f" && group.?replicas.orValue(0) <= group.maxReplicas : !({SCALES}))"
    ),
)
def replica_bounds(cluster: RayCluster) -> Violations:
    """`maxReplicas` is set if the cluster scales. Neither `minReplicas` nor `replicas` is larger.

    KubeRay raises `replicas` to `minReplicas`.
    """
    for group in cluster.spec.at("workerGroupSpecs").items():
        least, desired, most = (group.at(key) for key in ("minReplicas", "replicas", "maxReplicas"))
        if most.number is None:
            if cluster.scales:
                yield most.wrong("is not set")
        elif (least.number or 0) > most.number:
            yield least.wrong(f"{least.shown()} is more than maxReplicas, {most.shown()}")
        elif (desired.number or 0) > most.number:
            yield desired.wrong(f"{desired.shown()} is more than maxReplicas, {most.shown()}")


@rule(
    "ray-containers",
    Severity.HIGH,
    what="Head and workers have a container.",
    why="KubeRay refuses a group without one, with an event only.",
    source=f"{_VALIDATION}: ValidateRayClusterSpec",
    fix="Give the pod template Ray's container, as its first.",
    kinds=_CLUSTERS,
    cel=of_ray("variables.rayPods.all(pod, pod.spec.?containers.orValue([]).size() > 0)"),
)
def has_containers(cluster: RayCluster) -> Violations:
    """Requires at least one container in each pod template."""
    for pod in cluster.pods():
        if not list(pod.spec.at("containers").items()):
            yield pod.template.at("spec", "containers").wrong("is empty")


_ANNOTATIONS_IN_CEL = "object.metadata.?annotations"
_TOLERANT_IN_CEL = "ray.?gcsFaultToleranceOptions.hasValue()"
_NO_FT_IN_CEL = f"{_ANNOTATIONS_IN_CEL}[?'ray.io/ft-enabled'].orValue('') != 'true'"


def _no_variable_in_cel(name: str, when: str = ALWAYS) -> str:
    return f"(!({when}) || !{HEAD_CONTAINER}.?env.orValue([]).exists(e, e.name == '{name}'))"


def _no_parameter_in_cel(name: str, when: str = ALWAYS) -> str:
    return f"(!({when}) || !{HEAD}.?rayStartParams[?'{name}'].hasValue())"


def _no_annotation_in_cel(key: str, when: str) -> str:
    return f"(!{when} || !{_ANNOTATIONS_IN_CEL}[?'{key}'].hasValue())"


@rule(
    "ray-no-env-conflict",
    Severity.HIGH,
    what="What a field of KubeRay's sets is set by no variable as well.",
    why="KubeRay refuses the RayCluster, with an event only.",
    source=f"{_VALIDATION}: ValidateRayClusterSpec",
    fix="Use gcsFaultToleranceOptions and autoscalerOptions.version alone.",
    kinds=_CLUSTERS,
    cel=of_ray(
        " && ".join(
            [
                _no_variable_in_cel("REDIS_USERNAME"),
                _no_variable_in_cel("REDIS_PASSWORD", _TOLERANT_IN_CEL),
                _no_variable_in_cel("RAY_REDIS_ADDRESS", f"{_TOLERANT_IN_CEL} || {_NO_FT_IN_CEL}"),
                _no_variable_in_cel(
                    "RAY_enable_autoscaler_v2", f"ray.?autoscalerOptions.?version.hasValue() || !({SCALES})"
                ),
                _no_parameter_in_cel("redis-username"),
                _no_parameter_in_cel("redis-password", _TOLERANT_IN_CEL),
                _no_annotation_in_cel("ray.io/ft-enabled", _TOLERANT_IN_CEL),
                _no_annotation_in_cel("ray.io/external-storage-namespace", _TOLERANT_IN_CEL),
            ]
        )
    ),
)
def no_env_conflict(cluster: RayCluster) -> Violations:
    """Rejects variables, start parameters and annotations for which KubeRay has fields."""
    params = cluster.spec.at("headGroupSpec", "rayStartParams")
    tolerant = cluster.spec.at("gcsFaultToleranceOptions").is_set
    refused = ["REDIS_USERNAME"]
    if tolerant:
        refused += ["REDIS_PASSWORD", "RAY_REDIS_ADDRESS"]
    elif cluster.owner.annotation("ray.io/ft-enabled").text != "true":
        refused += ["RAY_REDIS_ADDRESS"]
    if cluster.spec.at("autoscalerOptions", "version").is_set or not cluster.scales:
        refused += ["RAY_enable_autoscaler_v2"]
    for name in refused:
        if (variable := cluster.head.first.env(name)) is not None:
            yield variable.wrong(f"{name} is not allowed beside KubeRay's own field")
    for key in ("redis-username", *(["redis-password"] if tolerant else [])):
        if params.at(key).is_set:
            yield params.at(key).wrong("is not allowed beside gcsFaultToleranceOptions")
    for key in ("ray.io/ft-enabled", "ray.io/external-storage-namespace") if tolerant else ():
        if cluster.owner.annotation(key).is_set:
            yield cluster.owner.annotation(key).wrong("is not allowed beside gcsFaultToleranceOptions")


@rule(
    "ray-k8s-token-auth",
    Severity.HIGH,
    what="Tokens of Kubernetes are only asked for where KubeRay can.",
    why="KubeRay refuses them in a RayJob, beside a secretName, before Ray 2.55 and without mode: token.",
    source=f"{_VALIDATION}: ValidateRayClusterSpec, ValidateRayJobSpec",
    fix="Remove enableK8sTokenAuth, or what contradicts it.",
    kinds=_CLUSTERS,
    cel=of_ray(
        "ray.?authOptions.?enableK8sTokenAuth.orValue(false) != true || request.kind.kind == 'RayCluster'"
        " && ray.authOptions.?mode.orValue('') == 'token' && ray.authOptions.?secretName.orValue('') == ''"
    ),
)
def k8s_token_auth(cluster: RayCluster) -> Violations:
    """Allows it only in a standalone RayCluster, with `mode: token` and without `secretName`."""
    auth = cluster.spec.at("authOptions")
    enabled = auth.at("enableK8sTokenAuth")
    if enabled.value is not True:
        return
    if not cluster.standalone:
        yield enabled.wrong(f"a {cluster.owner.kind} cannot have it")
    if auth.at("mode").text != "token":
        yield auth.at("mode").wrong("has to be token beside enableK8sTokenAuth")
    if auth.at("secretName").text:
        yield auth.at("secretName").wrong("is not allowed beside enableK8sTokenAuth")
