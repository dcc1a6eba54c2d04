"""What the API server, KubeRay and Pod Security refuse by rules that no other file has (kuberay/)."""

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import yaml

from core.body import ReadOnlyBody
from core.pods import PROFILES, RAY, RAY_CLUSTERS
from core.problems import Path, Problem
from core.secrets import PLACEHOLDER
from kuberay import OperatorContext, validate
from kuberay.advice import advice_on_cluster, advice_on_job, advice_on_service
from kuberay.demands import problems_of_endpoints, problems_of_entrypoint, problems_of_serving
from kuberay.offers import offers_of, problems_of_nodes
from kuberay.pod_security import APP_ARMOR, HANDLERS, SELINUX_TYPES, SYSCTLS
from kuberay.pod_template import problems_of_template
from kuberay.ports import head_ports
from kuberay.releases import DEFAULT_FEATURE_GATES
from kuberay.rules import groups_of
from kuberay.running import problems_of_running
from kuberay.runtime_env import problems_of_runtime_env
from kuberay.schema import NEXT, stored
from kuberay.serve import problems_of_serve_config, read_config
from kuberay.shell import problems_of_shell
from kuberay.validation import SHAPE
from policies.rule import Severity, Violations, rule
from policies.search import is_foreign
from policies.values import Node, Object, Violation
from policies.walk import Pod, RayCluster, ray_clusters

ACCEPTED = "ray-spec-valid"

ADVISED = "ray-works-as-written"

ELSEWHERE: Mapping[str, str] = {
    "unknown-kind": "kind-judged",
    "pod-security": "pod-baseline",
    **dict.fromkeys(("ray-cluster-name", "ray-job-name", "ray-service-name"), "ray-name-length"),
    "group-containers": "ray-containers",
    **dict.fromkeys(("group-resources", "group-start-labels"), "ray-start-params"),
    "group-name-unique": "ray-group-names",
    **dict.fromkeys(("replica-bounds", "replicas-within-bounds"), "ray-replica-bounds"),
    "autoscaler-restart-policy": "ray-restart-never",
    **dict.fromkeys(
        ("autoscaler-version-env", "redis-annotation", "redis-address-env", "redis-password", "redis-username"),
        "ray-no-env-conflict",
    ),
    "redis-namespace": "ray-no-env-conflict",
    **dict.fromkeys(("auth-kubernetes-token", "auth-mode"), "ray-k8s-token-auth"),
    "job-suspend": "ray-job-suspend",
    "job-cluster": "ray-job-has-cluster",
    "job-backoff-limit": "ray-job-backoff",
    "deletion-rules-alone": "ray-job-deletion",
    "undone-drain": "ray-worker-stops",
}
"""Rules of kuberay/rules.py that rules of their own are about."""


_PATCH = ", or judge what `kubectl kustomize FOLDER` renders with it if it is a patch"


@rule(
    ACCEPTED,
    Severity.HIGH,
    what="The API server and KubeRay accept the object.",
    why="KubeRay reports most errors only in an event, and then creates and changes nothing.",
    source="kuberay ray-operator/config/crd/bases; controllers/ray/utils/validation.go, common/service.go",
    fix="Change the field as the message suggests.",
)
def spec_valid(owner: Object) -> Violations:
    """Asks the CRDs' schema and all rules of the operator that have no rule here, with every feature gate on; then the
    API server's rules on pods, `ray start` and Ray's autoscaler, which would refuse the pods of an accepted object."""
    refused, in_pods = _problems(owner)
    if refused and all(each.rule == "required-field" for each in refused) and owner.root.at("spec").is_set:
        refused = tuple(replace(each, message=f"{each.message}{_PATCH}") for each in refused)
    for each in {(each.path, each.message): each for each in (*refused, *in_pods)}.values():
        if each.rule not in ELSEWHERE and not PLACEHOLDER.search(str(each.value)):
            yield _violation(owner, each)
    accepted = not (refused or in_pods)
    of_ray = [*_of_job(owner, accepted), *_of_service(owner, accepted)]
    yield from (_violation(owner, each) for each in of_ray if not PLACEHOLDER.search(str(each.value)))


@functools.lru_cache(maxsize=16)
def _problems(owner: Object) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """What KubeRay and the API server refuse of an object, and of the pods of its RayClusters that they accept. For
    two rules: the cache has the objects that are judged now. Raises NotKnownYetError."""
    refused: list[Problem] = []
    if owner.kind in RAY_CLUSTERS:
        refused += _refused(owner.root.value, ())
    elif is_foreign(owner):
        for cluster in ray_clusters(owner):
            body = {"kind": "RayCluster", "metadata": {"name": "it"}, "spec": cluster.spec.value}
            refused += _refused(body, cluster.spec.path)
    in_pods: list[Problem] = []
    for cluster in ray_clusters(owner):
        at = cluster.spec.path
        faulty = [each for each in refused if each.path[: len(at)] == at]
        if all(PLACEHOLDER.search(str(each.value)) for each in faulty):
            in_pods += _in_known_pods(_body(cluster), at, [each.path[len(at) :] for each in faulty])
    return tuple(refused), tuple(in_pods)


def _in_known_pods(body: ReadOnlyBody, at: Path, unknown: Collection[Path]) -> Iterator[Problem]:
    """The same of the groups whose pods are known. `unknown`: paths of placeholders in the spec."""
    if any(path[:1] == ("headGroupSpec",) for path in unknown):
        return
    groups = {}
    for index, group in enumerate(body["spec"].get("workerGroupSpecs") or ()):
        keys = {path[2] for path in unknown if path[:2] == ("workerGroupSpecs", index)}
        if not keys & {"template", "rayStartParams", "resources"}:
            groups[index] = {key: value for key, value in group.items() if key not in keys}
    spec = {key: value for key, value in body["spec"].items() if (key,) not in unknown}
    if unknown:
        spec["workerGroupSpecs"] = list(groups.values())
    for each in _in_pods({**body, "spec": spec}, at):
        match each.path[len(at) :]:
            case ("workerGroupSpecs", int(index), *rest):
                yield replace(each, path=(*at, "workerGroupSpecs", list(groups)[index], *rest))
            case _:
                yield each


def _in_pods(body: ReadOnlyBody, at: Path) -> Iterator[Problem]:
    """What no pod of a RayCluster would start with, or start Ray with."""
    spec, metadata = body["spec"], body["metadata"]
    for place, group in groups_of(spec, at):
        yield from problems_of_template(group["template"], (*place, "template"))
    yield from problems_of_nodes(spec, at, head_ports(spec))
    yield from problems_of_running(spec, metadata, at)


_JOBS: Mapping[str, Path] = {"RayJob": ("spec",), "RayCronJob": ("spec", "jobTemplate")}


def _of_job(owner: Object, accepted: bool) -> Iterator[Problem]:
    """What Ray refuses of a job; and of an accepted one what its entrypoint needs and no node of its cluster offers."""
    if owner.kind not in _JOBS:
        return
    at = _JOBS[owner.kind]
    job = _plain(owner.root.at(*at))
    environment = _parsed(_text(job, "runtimeEnvYAML"))
    for each in problems_of_runtime_env(environment) if isinstance(environment, dict) else ():
        yield each.below((*at, "runtimeEnvYAML"))
    parts = {"runtimeEnvYAML": environment, "metadata": job.get("metadata")}
    mode, entrypoint = _text(job, "submissionMode") or "K8sJobMode", _text(job, "entrypoint")
    yield from (each.below(at) for each in problems_of_shell(mode, entrypoint, parts))
    for cluster in ray_clusters(owner) if accepted else ():
        yield from (each.below(at) for each in problems_of_entrypoint(job, offers_of(_body(cluster))))


def _of_service(owner: Object, accepted: bool) -> Iterator[Problem]:
    """What Ray refuses of a Serve config; and of an accepted RayService what its replicas need and no node offers."""
    if owner.kind != "RayService":
        return
    spec = _plain(owner.root.at("spec"))
    text = _text(spec, "serveConfigV2")
    if not text:
        message = "nothing is served, so that the service is never ready: add applications"
        yield Problem(("spec", "serveConfigV2"), None, message, "serve-config")
    config, refused = read_config(text)
    yield from (each.below(("spec", "serveConfigV2")) for each in refused)
    if config is not None:
        found = list(problems_of_serve_config(config))
        yield from (each.below(("spec", "serveConfigV2")) for each in found)
        of_spec = [*problems_of_endpoints(config, spec.get("excludeHeadPodFromServeSvc") is True)]
        of_spec += problems_of_serving(config, _plain(owner.root)) if accepted and not found else ()
        yield from (each.below(("spec",)) for each in of_spec)


def _body(cluster: RayCluster) -> ReadOnlyBody:
    """It as an object. KubeRay copies the annotations of a RayJob or RayService."""
    copied = cluster.owner.kind in ("RayCluster", "RayJob", "RayService")
    metadata = _plain(cluster.owner.root.at("metadata")) if copied else {}
    return {"metadata": metadata, "spec": _without_nulls(cluster.spec.value)}


def _plain(node: Node) -> dict[str, Any]:
    """A mapping without nulls; an empty one for another type. Raises NotKnownYetError."""
    value = _without_nulls(node.value)
    return value if isinstance(value, dict) else {}


def _text(part: Mapping[str, Any], key: str) -> str:
    value = part.get(key)
    return value if isinstance(value, str) else ""


def _violation(owner: Object, problem: Problem) -> Violation:
    """A problem of a field, or inside a field that is a text of YAML."""
    secret = any(owner.root.at(*problem.path[:length]).secret for length in range(len(problem.path) + 1))
    return Violation(owner, problem.path, "is not accepted" if secret else problem.message)


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


@rule(
    ADVISED,
    Severity.LOW,
    what="A RayCluster, RayJob or RayService does what its fields say.",
    why="KubeRay and Ray accept some values that have no effect, or with which tasks wait and pods are never ready.",
    source="ray python/ray/autoscaler/_private/kuberay/autoscaling_config.py; kuberay#4994; kuberay/faults.py",
    fix="Change the field as the message suggests.",
    kinds=("RayCluster", "RayJob", "RayService", "RayCronJob"),
)
def works_as_written(owner: Object) -> Violations:
    """Gives the advice of `check` on an object that KubeRay and Ray accept."""
    clusters = list(ray_clusters(owner))
    if any(_problems(owner)):
        return
    found = [each for cluster in clusters for each in advice_on_cluster(_body(cluster), cluster.spec.path)]
    if owner.kind in _JOBS:
        at = _JOBS[owner.kind]
        version = clusters[0].spec.at("rayVersion").text if clusters else None
        found += (each.below(at) for each in advice_on_job(_plain(owner.root.at(*at)), version))
    elif owner.kind == "RayService":
        spec = _plain(owner.root.at("spec"))
        config, _ = read_config(_text(spec, "serveConfigV2"))
        of_service = advice_on_service(config, spec) if config else ()
        found += (each.below(("spec",)) for each in of_service)
    for each in found:
        if each.rule not in ELSEWHERE and not PLACEHOLDER.search(str(each.value)):
            yield _violation(owner, each)


def _refused(body: Any, at: Path) -> Iterator[Problem]:
    """`at`: the path of the spec, if the object only contains it."""
    # The newest release: fields that its CRDs may have pass, unless they look like misspelt ones.
    operator = OperatorContext(f"{NEXT}.0", feature_gates=dict.fromkeys(DEFAULT_FEATURE_GATES, True))
    for each in validate({**_without_nulls(body), "apiVersion": f"{RAY}/v1"}, operator):
        yield replace(each, path=(*at, *each.path[1:])) if at else each


def is_well_formed(template: Node) -> bool:
    """Whether the types in a submitter's pod template are those of the CRDs' schema. Raises NotKnownYetError."""
    path = ("spec", "submitterPodTemplate")
    spec = {"submitterPodTemplate": _without_nulls(template.value)}
    body = {"apiVersion": f"{RAY}/v1", "kind": "RayJob", "metadata": {"name": "it"}, "spec": spec}
    _, found = stored(body, OperatorContext(f"{NEXT}.0"))
    return not any(each.path[: len(path)] == path and each.rule in SHAPE for each in found)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


@rule(
    "pod-baseline",
    Severity.HIGH,
    what="Pods keep the node's AppArmor and SELinux, change no unsafe sysctl, and probe no other host.",
    why="Level baseline of Pod Security refuses such a pod; where it is not enforced, the pod has more of its node.",
    source="https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline",
    fix="Remove the field, or use a value that the level allows.",
)
def baseline(pod: Pod) -> Violations:
    """Rejects what level baseline refuses and no other rule is about.

    The API server enforces it by the level of the namespace, which `ns-psa-labels` requires.
    """
    for sysctl in pod.spec.at("securityContext", "sysctls").items():
        if sysctl.at("name").text not in SYSCTLS:
            yield sysctl.at("name").wrong(f"{sysctl.at('name').shown()} is not a safe sysctl")
    for key, value in pod.template.at("metadata", "annotations").entries():
        off = value.text not in ("", "runtime/default") and not (value.text or "").startswith("localhost/")
        if key.startswith(APP_ARMOR) and off:
            yield value.wrong("turns AppArmor off")
    yield from _profiles(pod.spec.at("securityContext"))
    for container in pod.containers():
        yield from _profiles(container.node.at("securityContext"))
        for steps in HANDLERS:
            for kind in ("httpGet", "tcpSocket"):
                host = container.node.at(*steps, kind, "host")
                if host.text:
                    yield host.wrong(f"asks host {host.shown()}")


def _profiles(context: Node) -> Violations:
    profile = context.at("appArmorProfile")
    if profile.is_set and profile.at("type").text not in PROFILES:
        yield profile.at("type").wrong(f"AppArmor is {profile.at('type').shown()}")
    for key in ("type", "user", "role"):
        value = context.at("seLinuxOptions", key)
        if (value.text or "") not in (SELINUX_TYPES if key == "type" else ("",)):
            yield value.wrong(f"the {key} of SELinux is {value.shown()}")
