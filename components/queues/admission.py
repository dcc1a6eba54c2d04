"""Admission policies, in CEL, for the use of queues. Pure functions.

They need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Body = dict[str, Any]

API_VERSION = "admissionregistration.k8s.io/v1"

ALLOWED_NAMESPACES = "ray-platform/allowed-namespaces"
"""Annotation of a Queue: the namespaces that may use it, separated by commas."""

OF_THE_STACK = {"ray-platform/queue": "true"}
"""Label of Queues whose use is restricted."""

QUEUE_LABEL = "volcano.sh/queue-name"
"""Label by which RayClusters and RayJobs name a queue (ray-operator/controllers/ray/batchscheduler/volcano)."""

KUEUE_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The same for Kueue (kueue, pkg/controller/constants/constants.go)."""

_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
"""Annotation by which a pod that belongs to no gang names one (volcano, pkg/controllers/podgroup)."""


@dataclass(frozen=True)
class _Kinds:
    """Kinds that name a queue in the same way."""

    name: str
    rules: tuple[tuple[str, str], ...]
    """API group and plural."""
    queue: str
    """In CEL, the queue that `%s`, an object, names; empty where it names none."""
    failure_policy: str


_VOLCANO = _Kinds(
    "ray-platform-queues",
    (("scheduling.volcano.sh", "podgroups"), ("batch.volcano.sh", "jobs")),
    "%s.?spec.?queue.orValue('')",
    "Fail",
)
"""A pod is always scheduled from the queue of its PodGroup, so this policy cannot be bypassed."""

_EARLY = _Kinds(
    "ray-platform-queues-early",
    (("ray.io", "rayclusters"), ("ray.io", "rayjobs"), ("ray.io", "rayservices"), ("", "pods")),
    f"%s.metadata.?labels[?'{QUEUE_LABEL}'].orValue(%s.metadata.?annotations[?'{_QUEUE_ANNOTATION}'].orValue(''))",
    "Ignore",
)
"""The same rule for objects of users, so that the author of a RayCluster gets the error, not an event of the operator.
It fails open: without the CRD of Queue the API server could not evaluate it, and would refuse all pods of the
cluster."""


def allowed_namespaces() -> list[Body]:
    """The policies, each with its binding. They read the annotation of each Queue, so they do not depend on the queues.

    If a namespace is removed from the list, its existing objects keep their queue, and can be changed and deleted. New
    pods of these objects are refused.
    """
    return [body for kinds in (_VOLCANO, _EARLY) for body in _policy(kinds)]


def _policy(kinds: _Kinds) -> Iterable[Body]:
    now, before = (kinds.queue.replace("%s", of) for of in ("object", "oldObject"))
    rules = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [plural]}
        for group, plural in kinds.rules
    ]
    allowed = f"params.metadata.?annotations[?'{ALLOWED_NAMESPACES}'].orValue('')"
    yield {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": kinds.name},
        "spec": {
            "failurePolicy": kinds.failure_policy,
            "paramKind": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"},
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [
                {"name": "names-a-queue", "expression": f"{now} != ''"},
                {"name": "another-one", "expression": f"oldObject == null || {before} != {now}"},
            ],
            "variables": [{"name": "queue", "expression": now}, {"name": "allowed", "expression": allowed}],
            "validations": [
                {
                    "expression": "variables.queue != params.metadata.name || "
                    "variables.allowed.split(',').exists(name, name == request.namespace)",
                    "messageExpression": "'queue ' + variables.queue + ' is not for namespace ' + request.namespace + "
                    "', but for ' + (variables.allowed == '' ? 'none' : variables.allowed.split(',').join(', ')) + "
                    "': name another queue, or add the namespace to the allowedNamespaces of this one'",
                    "message": "the queue is not for this namespace",
                    "reason": "Forbidden",
                }
            ],
        },
    }
    yield {
        "apiVersion": API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": kinds.name},
        "spec": {
            "policyName": kinds.name,
            "validationActions": ["Deny"],
            "paramRef": {"selector": {"matchLabels": dict(OF_THE_STACK)}, "parameterNotFoundAction": "Allow"},
        },
    }
