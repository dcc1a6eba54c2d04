"""The admission policy that keeps a tenant's RayClusters, RayJobs and RayServices from harming others, in CEL.

Who makes one decides what the operator makes from it: pods that evict others, Services that take the traffic of an
address, an Ingress for all hosts. An `ownerReference` to an owner that does not exist makes Kubernetes' garbage
collector delete the object. Earlier violations stay, so that what runs can be scaled and deleted.
"""

from collections.abc import Mapping, Sequence

from components.access.personas import ALL_RAY_KINDS, RAY_GROUP
from core.body import Body
from core.pods import POD_SECURITY_PREFIX, PROFILES
from policies.cel import before, listed, text, variables

IDLE_FINALIZER = "ray.io/idle-termination-cleanup-finalizer"
"""Finalizer that Ray's autoscaler adds to its own RayCluster
(ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py)."""

PRIORITY_LABELS = ("ray.io/priority-class-name", "kueue.x-k8s.io/priority-class")
"""Labels with the priority of a gang: for Volcano (constant.go: RayPriorityClassName) and for Kueue."""

RESERVED = "system-"
"""Prefix of Kubernetes' own PriorityClasses, which are above all others."""

NO_CONTROLLER = {
    "name": "no-controller",
    "expression": f"!authorizer.group('{RAY_GROUP}').resource('rayclusters').subresource('finalizers')"
    ".namespace(request.namespace).check('update').allowed()",
}
"""The right that Kubernetes' own admission plugin OwnerReferencesPermissionEnforcement asks for. KubeRay's role has it
(ray-operator/config/rbac/role.yaml), and no persona."""

_OF_RAY = f"request.kind.group == '{RAY_GROUP}'"

_LABELLED = ", ".join(f"string(object.metadata.?labels[?'{label}'].orValue(''))" for label in PRIORITY_LABELS)
_GANG = "request.kind.kind == 'PodGroup' ? string(object.?spec.?priorityClassName.orValue('')) : ''"
_CLASSES = f"variables.pods.map(pod, string(pod.spec.?priorityClassName.orValue(''))) + [{_GANG}, {_LABELLED}]"
"""PriorityClasses of all pods of an object, of a PodGroup, and of gangs."""

_TAKES_NO_ADDRESS = (
    "([object.?spec.?externalIPs, object.?spec.?serveService.?spec.?externalIPs]"
    " + variables.ray.map(ray, ray.?headGroupSpec.?headService.?spec.?externalIPs))"
    ".all(each, each.orValue([]).size() == 0)"
)

_NO_INGRESS = "variables.ray.all(ray, ray.?headGroupSpec.?enableIngress.orValue(false) != true)"

_RESTRICTED = f"namespaceObject.metadata.?labels[?'{POD_SECURITY_PREFIX}/enforce'].orValue('') == 'restricted'"


def _in_force(*steps: str) -> str:
    below = "".join(f".?{step}" for step in ("securityContext", *steps))
    return f"c{below}.or(spec{below})"


_MEETS_RESTRICTED = (
    "(spec.?initContainers.orValue([]) + spec.?containers.orValue([])).all(c,"
    " c.?securityContext.?allowPrivilegeEscalation.orValue(true) == false"
    " && 'ALL' in c.?securityContext.?capabilities.?drop.orValue([])"
    f" && {_in_force('runAsNonRoot')}.orValue(false) == true"
    f" && {_in_force('seccompProfile', 'type')}.orValue('') in {listed(PROFILES)})"
)
"""What Pod Security `restricted` requires of each container of a pod's `spec`."""

_CAN_SUBMIT = (
    f"!({_RESTRICTED}) || variables.jobs.all(job, job.?submissionMode.orValue('K8sJobMode') == 'K8sJobMode'"
    " ? job.?submitterPodTemplate.?spec.hasValue()"
    f" && [job.submitterPodTemplate.spec].all(spec, {_MEETS_RESTRICTED})"
    " : job.submissionMode != 'SidecarMode')"
)
"""KubeRay's own submitter has no securityContext (controllers/ray/common/job.go: GetDefaultSubmitterContainer). In
SidecarMode it is a container of the head."""


_ALIAS = "/server-alias(-regex)?$"
"""Annotations with further host names of an Ingress: of ingress-nginx and of HAProxy Ingress."""


def neighbours(classes: Sequence[str], volcano: bool = False) -> Body:
    """The spec of the policy. `classes`: PriorityClasses that tenants' RayClusters may have. `volcano`: the operator
    schedules with it."""
    rules = [*_RULES, *([_OWN_CLUSTER] if volcano else [])]
    own = [
        {"name": "classes", "expression": _CLASSES},
        {"name": "classesBefore", "expression": before(_CLASSES)},
    ]
    used = [each["expression"] for each in (*own, *rules)]
    return {
        "matchConstraints": {"resourceRules": _resource_rules()},
        "matchConditions": [NO_CONTROLLER],
        "variables": [*variables(used), *own],
        "validations": [_priority(classes), *rules],
    }


def own_hosts(hosts: Mapping[str, Sequence[str]]) -> Body:
    """The spec of a policy: Ingresses have only host names of their tenant. `hosts`: by namespace."""
    known = ", ".join(f"{text(namespace)}: {listed(names)}" for namespace, names in hosts.items() if names)
    own = f"{{{known}}}[?request.namespace].orValue([])"
    allowed = "variables.hosts.exists(own, host == own || own.startsWith('*.') && host.endsWith(own.substring(1)))"
    asked = "object.spec.?rules.orValue([]).map(rule, rule.?host.orValue(''))"
    secured = f"object.spec.?tls.orValue([]).all(tls, tls.?hosts.orValue([]).all(host, {allowed}))"
    named = f"object.metadata.?annotations.orValue({{}}).all(key, !key.matches({text(_ALIAS)}))"
    holds = f"!has(object.spec.defaultBackend) && {asked}.all(host, {allowed}) && {secured} && {named}"
    reason = (
        "each rule and tls needs a host of this tenant, and there may be no defaultBackend and no server-alias among "
        "the annotations"
    )
    fix = "ask for others in network.ingressHosts of the tenant in the stack file"
    return {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["networking.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["ingresses"],
                }
            ]
        },
        "matchConditions": [NO_CONTROLLER],
        # An update does not change the hosts of a tenant.
        "variables": [{"name": name, "expression": own} for name in ("hosts", "hostsBefore")],
        "validations": [
            {
                **_earlier_stays(holds, f"{reason}; {fix}"),
                "messageExpression": f"{asked}.join(', ') + {text(f': {reason}. Its hosts: ')} + "
                f"variables.hosts.join(', ') + {text(f'; {fix}')}",
            }
        ],
    }


def _resource_rules() -> list[Body]:
    found = (
        (RAY_GROUP, ALL_RAY_KINDS, ("CREATE", "UPDATE")),
        ("", ("services",), ("CREATE", "UPDATE")),
        ("", ("pods",), ("CREATE",)),
        # Volcano creates PodGroups; people may patch them.
        ("scheduling.volcano.sh", ("podgroups",), ("UPDATE",)),
    )
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": list(resources)}
        for group, resources, operations in found
    ]


def _priority(classes: Sequence[str]) -> Body:
    # Kubernetes gives a pod without a class the cluster's default one, whose name is not known.
    allowed = f"each in {listed(['', *classes])} || request.kind.kind == 'Pod' && !each.startsWith('{RESERVED}')"
    stays = "oldObject != null && each in variables.classesBefore"
    use = " or ".join(classes) or "none"
    reason = f"may evict pods of other tenants: use {use}, or ask for it in priorityClasses.allowed of the stack file"
    return {
        "expression": f"variables.classes.all(each, {allowed} || {stays})",
        "messageExpression": f"'PriorityClass ' + variables.classes.filter(each, !({allowed})).join(', ')"
        f" + {text(f' {reason}')}",
        "message": f"this PriorityClass {reason}",
    }


def _earlier_stays(holds: str, message: str) -> Body:
    return {"expression": f"({holds}) || oldObject != null && !({before(holds)})", "message": message}


def _unchanged(field: str, keeps: str, message: str) -> Body:
    """A list of the metadata is as before: empty in a new object. `keeps`: CEL for the entries that count."""
    now = f"object.metadata.?{field}.orValue([]){keeps}"
    return {"expression": f"!({_OF_RAY}) || {now} == (oldObject == null ? [] : {before(now)})", "message": message}


_RULES = (
    _earlier_stays(
        _TAKES_NO_ADDRESS, "externalIPs take the traffic of other pods to these addresses (CVE-2020-8554): remove them"
    ),
    _earlier_stays(
        _NO_INGRESS, "KubeRay's Ingress is for all hosts, without TLS: remove enableIngress, and make an Ingress"
    ),
    _unchanged(
        "ownerReferences",
        "",
        "ownerReferences are KubeRay's: with an owner that does not exist the object would be deleted. Leave them as "
        "they are",
    ),
    _unchanged(
        "finalizers",
        f".filter(each, each != '{IDLE_FINALIZER}')",
        "finalizers are KubeRay's: without them nothing is cleaned up. Leave them as they are",
    ),
    _earlier_stays(
        _CAN_SUBMIT,
        "set submissionMode: HTTPMode. The namespace admits only pods that meet Pod Security restricted, and KubeRay's "
        "own submitter does not; in K8sJobMode a submitterPodTemplate may",
    ),
)

_OWN_CLUSTER = _earlier_stays(
    "variables.jobs.all(job, job.?rayClusterSpec.hasValue())",
    "with Volcano, KubeRay starts no RayJob on an existing RayCluster: submit to the jobs API of that RayCluster "
    "(`ray job submit`), or give the RayJob a rayClusterSpec",
)
"""controllers/ray/batchscheduler/volcano/volcano_scheduler.go: handleRayJob."""
