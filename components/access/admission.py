"""Admission policies, in CEL, for a tenant's namespace where RBAC is too coarse. Pure functions.

Both restrict the creation of pods through the operator, which can create any pod. They do not apply to users who may
create RayClusters. They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

from collections.abc import Sequence
from typing import Any

from .personas import RAY_GROUP, RAY_WRITE

Body = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"

CLUSTER_SELECTOR = "ray.io/cluster"
"""Key with which a RayJob names its RayCluster (constant.go: RayJobClusterSelectorKey)."""

_RAY_CLUSTERS = f"authorizer.group('{RAY_GROUP}').resource('rayclusters').namespace(request.namespace)"
_MAY_NOT_MAKE_ANY = {
    "name": "may-not-make-rayclusters",
    "expression": f"!{_RAY_CLUSTERS}.check('create').allowed()",
}
_OF_THE_NAMESPACE = {
    "name": "account-of-the-namespace",
    "expression": "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')",
}

SCALED = ("workerGroupSpecs", "idleSuspend")
SCALED_OF_GROUPS = ("replicas", "scaleStrategy")
"""Fields of a RayCluster's spec and of its worker groups that an autoscaler writes. It also adds a finalizer
(ray/autoscaler/v2/instance_manager/cloud_providers/kuberay/cloud_provider.py)."""


def scaling_only(namespace: str) -> dict[str, Body]:
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
        f"ray-platform-scaling-only-{namespace}",
        namespace,
        ("rayclusters", "UPDATE"),
        [_OF_THE_NAMESPACE, _MAY_NOT_MAKE_ANY],
        [{"expression": expression, "message": message} for expression in unchanged],
    )


def jobs_on_usable_clusters(namespace: str) -> dict[str, Body]:
    """Users who may create RayJobs but not RayClusters must select a RayCluster that they may use, without pod
    templates.

    A RayJob can contain its own RayCluster and a pod template for its submitter. Their pods could use any account and
    any Secret of the namespace.
    """
    cluster = f"object.spec.clusterSelector['{CLUSTER_SELECTOR}']"
    return _policy(
        f"ray-platform-ray-jobs-{namespace}",
        namespace,
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
                f"{_RAY_CLUSTERS}.name({cluster}).check('{RAY_WRITE}').allowed()",
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


def _policy(
    name: str, namespace: str, on: tuple[str, str], conditions: Sequence[Body], validations: Sequence[Body]
) -> dict[str, Body]:
    """The policy and its binding to the namespace. `on`: plural name of a KubeRay kind, and operation."""
    resource, operation = on
    rules = [{"apiGroups": [RAY_GROUP], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}]
    policy = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": list(conditions),
            "validations": list(validations),
        },
    }
    binding = {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        },
    }
    return {"policy": policy, "policy-binding": binding}
