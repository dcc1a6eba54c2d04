"""Admission policies, in CEL, for tenants' namespaces where RBAC is too coarse. Pure functions.

The policies serve all tenants of a stack, and each asks the API server about the author of a request:

- `scaling-only` and `ray-jobs` restrict who may patch RayClusters, or create RayJobs, without being allowed to create
  RayClusters. The operator can create any pod, so both rights would be more than they look.
- `neighbours` refuses what a RayCluster may do to others: evict their pods, take their traffic, delete objects; and
  `ingress-hosts` the host names of others. They do not apply to those who may do what KubeRay's operator does
  (`update` on `rayclusters/finalizers`): the operator itself, Kubernetes' garbage collector, and Kubernetes
  administrators.

They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..tenant.settings import named, of_tenants
from .neighbours import neighbours, own_hosts
from .personas import RAY_GROUP, RAY_WRITE

Body = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"

CLUSTER_SELECTOR = "ray.io/cluster"
"""Key with which a RayJob names its RayCluster (constant.go: RayJobClusterSelectorKey)."""

_RAY_CLUSTERS = f"authorizer.group('{RAY_GROUP}').resource('rayclusters')"
_MAY_NOT_MAKE_ANY = {
    "name": "may-not-make-rayclusters",
    "expression": f"!{_RAY_CLUSTERS}.namespace(request.namespace).check('create').allowed()",
}
_OF_THE_NAMESPACE = {
    "name": "account-of-the-namespace",
    "expression": "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')",
}


@dataclass(frozen=True)
class Restricted:
    """What is admitted in the namespaces of a stack's tenants."""

    namespaces: Sequence[str] | None = None
    """The tenants' namespaces. None: the stack creates all of them, and their label selects them."""

    classes: Sequence[str] = ()
    """PriorityClasses that tenants' RayClusters may have."""

    hosts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Host names of Ingresses, by the namespaces of the tenants that may have any."""

    volcano: bool = False
    """Whether the operator schedules with Volcano."""


def restrictions(stack: str, admitted: Restricted) -> dict[str, Body]:
    """The policies of a stack, each with its binding, by part.

    `stack`: its name, so that stacks on one cluster have policies of their own.
    """
    own = re.sub("[^a-z0-9]+", "-", stack.lower()).strip("-")
    tenants = of_tenants(admitted.namespaces)
    policies = [
        ("scaling-only", _scaling_only(), tenants),
        ("ray-jobs", _jobs_on_usable_clusters(), tenants),
        ("neighbours", neighbours(admitted.classes, admitted.volcano), tenants),
    ]
    if admitted.hosts:
        policies.append(("ingress-hosts", own_hosts(admitted.hosts), named("In", admitted.hosts)))
    made: dict[str, Body] = {}
    for name, spec, where in policies:
        whole = f"ray-platform.{own}.{name}"
        binding = {
            "policyName": whole,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [where]}},
        }
        made[f"{name}-policy"] = _body("ValidatingAdmissionPolicy", whole, spec)
        made[f"{name}-policy-binding"] = _body("ValidatingAdmissionPolicyBinding", whole, binding)
    return made


def _body(kind: str, name: str, spec: Body) -> Body:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


SCALED = ("workerGroupSpecs", "idleSuspend")
SCALED_OF_GROUPS = ("replicas", "scaleStrategy")
"""Fields of a RayCluster's spec and of its worker groups that an autoscaler writes."""


def _scaling_only() -> Body:
    """Accounts of the namespace that may patch but not create RayClusters can only scale them.

    KubeRay allows the head's account to patch every RayCluster of its namespace (ray-operator/controllers/ray/common/
    rbac.go). Without this policy anybody with its token could add a worker group whose pods mount any Secret, or run as
    any account, of the namespace.
    """
    groups = ("object.spec.?workerGroupSpecs.orValue([])", "oldObject.spec.?workerGroupSpecs.orValue([])")
    same_group = _same_but("group", "before", SCALED_OF_GROUPS)
    unchanged = (
        *_same_but("object.spec", "oldObject.spec", SCALED),
        f"{groups[0]}.size() == {groups[1]}.size()",
        f"{groups[0]}.all(group, {groups[1]}.exists(before, {' && '.join(same_group)}))",
        *(f"object.metadata.?{field} == oldObject.metadata.?{field}" for field in ("labels", "annotations")),
    )
    message = (
        f"this account may only scale RayClusters: {' and '.join(SCALED_OF_GROUPS)} of worker groups are its to change"
    )
    return _policy(
        ("rayclusters", "UPDATE"),
        [_OF_THE_NAMESPACE, _MAY_NOT_MAKE_ANY],
        [{"expression": expression, "message": message} for expression in unchanged],
    )


def _jobs_on_usable_clusters() -> Body:
    """Users who may create RayJobs but not RayClusters must select a RayCluster that they may use, without pod
    templates.

    A RayJob can contain its own RayCluster and a pod template for its submitter. Their pods could use any account and
    any Secret of the namespace.
    """
    cluster = f"object.spec.clusterSelector['{CLUSTER_SELECTOR}']"
    return _policy(
        ("rayjobs", "CREATE"),
        [_MAY_NOT_MAKE_ANY],
        [
            _absent("rayClusterSpec"),
            _absent("submitterPodTemplate"),
            {
                "expression": f"object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue()",
                "message": f"name the RayCluster that it runs on: clusterSelector: {{{CLUSTER_SELECTOR}: NAME}}",
            },
            {
                "expression": f"!object.spec.?clusterSelector[?'{CLUSTER_SELECTOR}'].hasValue() || "
                f"{_RAY_CLUSTERS}.namespace(request.namespace).name({cluster}).check('{RAY_WRITE}').allowed()",
                "messageExpression": f"'you may not use RayCluster ' + {cluster} + ': the stack file does not name you "
                "among its users'",
                "message": "you may not use this RayCluster",
            },
        ],
    )


def _same_but(now: str, before: str, but: Sequence[str]) -> tuple[str, str]:
    """CEL: two mappings are equal except for some keys."""
    free = "[" + ", ".join(f"'{key}'" for key in but) + "]"
    return (
        f"{now}.all(key, key in {free} || key in {before} && {now}[key] == {before}[key])",
        f"{before}.all(key, key in {free} || key in {now})",
    )


def _absent(field: str) -> Body:
    return {
        "expression": f"!has(object.spec.{field})",
        "message": f"{field} is for those who may make RayClusters: leave it out, name a RayCluster in clusterSelector",
    }


def _policy(on: tuple[str, str], conditions: Sequence[Body], validations: Sequence[Body]) -> Body:
    """The spec of a policy. `on`: plural name of a KubeRay kind, and operation."""
    resource, operation = on
    rules = [{"apiGroups": [RAY_GROUP], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}]
    return {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": list(conditions),
        "validations": list(validations),
    }
