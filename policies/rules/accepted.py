"""What the API server, KubeRay and Pod Security refuse by rules that no other file has (kuberay/)."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml

from core.pods import PROFILES, RAY, RAY_CLUSTERS
from core.problems import Path, Problem, dotted, repeats
from kuberay import OperatorContext, validate
from kuberay.offers import problems_of_nodes
from kuberay.pod_security import APP_ARMOR, HANDLERS, SELINUX_TYPES, SYSCTLS
from kuberay.pod_template import problems_of_template
from kuberay.releases import DEFAULT_FEATURE_GATES
from kuberay.rules import groups_of
from kuberay.schema import NEXT, stored
from kuberay.shell import interpreted
from kuberay.validation import SHAPE
from policies.rule import Severity, Violations, rule
from policies.search import is_foreign
from policies.values import Node, Object, Violation, is_placeholder
from policies.walk import Pod, ray_clusters

_ELSEWHERE = frozenset(
    {
        *("unknown-kind", "ray-cluster-name", "ray-job-name", "ray-service-name"),
        *("group-containers", "group-resources", "group-start-labels", "group-name-unique"),
        *("replica-bounds", "replicas-within-bounds", "autoscaler-restart-policy", "autoscaler-version-env"),
        *("redis-annotation", "redis-address-env", "redis-password", "redis-username", "redis-namespace"),
        *("auth-kubernetes-token", "auth-mode", "job-suspend", "job-cluster", "job-backoff-limit"),
        "deletion-rules-alone",
    }
)
"""Rules of KubeRay (kuberay/rules.py) that rules of their own are about: ray-name-length, ray-containers and others."""


@rule(
    "ray-spec-valid",
    Severity.HIGH,
    what="The API server and KubeRay accept the object.",
    why="KubeRay reports most errors only in an event, and then creates and changes nothing.",
    source="kuberay ray-operator/config/crd/bases; controllers/ray/utils/validation.go, common/service.go",
    fix="Change the field as the message suggests.",
)
def spec_valid(owner: Object) -> Violations:
    """Asks the CRDs' schema and all rules of the operator that have no rule here, with every feature gate on; then the
    API server's rules on pods, `ray start` and Ray's autoscaler, which would refuse the pods of an accepted object."""
    refused: list[Problem] = []
    if owner.kind in RAY_CLUSTERS:
        refused += _refused(owner.root.value, ())
    elif is_foreign(owner):
        for cluster in ray_clusters(owner):
            body = {"kind": "RayCluster", "metadata": {"name": "it"}, "spec": cluster.spec.value}
            refused += _refused(body, cluster.spec.path)
    found = [each for each in refused if each.rule not in _ELSEWHERE]
    for cluster in ray_clusters(owner):
        at = cluster.spec.path
        if not any(each.path[: len(at)] == at for each in refused):
            found += _in_pods(_without_nulls(cluster.spec.value), at)
    for each in found:
        place = owner.root.at(*each.path)
        if not is_placeholder(str(each.value)):
            yield Violation(owner, each.path, "is not accepted" if place.secret else each.message)
    if owner.kind == "RayJob":
        yield from _interpreted(owner.root.at("spec"))
    elif owner.kind == "RayService":
        yield from _served_twice(owner.root.at("spec", "serveConfigV2"))


_RAY_CONTAINERS = ("ray-head", "ray-worker")
"""Names of Ray's container in KubeRay's samples and charts."""


def _in_pods(spec: Any, at: Path) -> Iterator[Problem]:
    """What no pod of a RayCluster would start with, or start Ray with."""
    for place, group in groups_of(spec, at):
        template = (*place, "template")
        yield from problems_of_template(group["template"], template)
        for index, container in enumerate(group["template"]["spec"]["containers"]):
            if index and container.get("name") in _RAY_CONTAINERS:
                message = "KubeRay starts Ray in the first container of a pod: move this one to the beginning"
                yield Problem((*template, "spec", "containers", index, "name"), container["name"], message, "")
    yield from problems_of_nodes(spec, at)


def _served_twice(config: Node) -> Violations:
    """Ray refuses a Serve config in which two applications have one name or one route_prefix (serve/schema.py:
    ServeDeploySchema)."""
    try:
        parsed = yaml.safe_load(config.text or "")
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    applications = parsed.get("applications") if isinstance(parsed, dict) else None
    named = [each for each in applications or () if isinstance(each, dict)] if isinstance(applications, list) else []
    for key, default in (("name", "default"), ("route_prefix", "/")):
        values = ((("applications", at, key), str(each.get(key, default))) for at, each in enumerate(named))
        for path, value, _ in repeats(values):
            yield config.wrong(f"{dotted(path)} is {value!r}, as that of another application: set a unique {key}")


def _interpreted(job: Node) -> Violations:
    """A part of the entrypoint that only the pod that submits would run."""
    entrypoint = job.at("entrypoint")
    by_shell = job.at("submissionMode").text in (None, "", "K8sJobMode", "SidecarMode")
    if entrypoint.text and by_shell and (found := interpreted(entrypoint.text)):
        yield entrypoint.wrong(
            f"the shell that submits the job would interpret {found!r}, and the cluster would not get it; put it into "
            "single quotes, as in bash -c 'a && b'"
        )


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
