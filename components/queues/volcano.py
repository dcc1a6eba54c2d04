"""Renders queues into objects of Volcano, and admission policies, in CEL, for the use of queues. Pure functions.

The policies need Kubernetes 1.30 (ValidatingAdmissionPolicy v1).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from components.queues.settings import Queue
from core.body import Body
from core.problems import Problem
from kuberay.schedulers import QUEUE_LABEL

GROUP = "scheduling.volcano.sh"
API_VERSION = f"{GROUP}/v1beta1"

_POLICIES_VERSION = "admissionregistration.k8s.io/v1"

ALLOWED_NAMESPACES = "ray-platform/allowed-namespaces"
"""Annotation of a Queue: the namespaces that may use it, separated by commas."""

OF_THE_STACK = {"ray-platform/queue": "true"}
"""Label of Queues whose use is restricted."""

_QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
"""Annotation by which a pod that belongs to no gang names one (volcano, pkg/controllers/podgroup)."""


def volcano_queue(queue: Queue) -> Body:
    """The Queue. Volcano's webhook refuses a guarantee that is more than `deserved` (volcano,
    pkg/webhooks/admission/queues/validate/validate_queue.go), so the guarantee is added to `deserved`.
    """
    settings = queue.settings
    guarantee = _nonzero(settings.guarantee.named)
    deserved = {**guarantee, **_nonzero(settings.deserved.named)}
    return {
        "apiVersion": API_VERSION,
        "kind": "Queue",
        "metadata": {
            "name": queue.name,
            "labels": dict(OF_THE_STACK),
            "annotations": {ALLOWED_NAMESPACES: ",".join(queue.namespaces)},
        },
        "spec": {
            "weight": 1 if settings.weight is None else settings.weight,
            "reclaimable": settings.reclaimable,
            "priority": settings.priority,
            "dequeueStrategy": settings.dequeue_strategy,
            **({"parent": settings.parent} if settings.parent else {}),
            **({"guarantee": {"resource": guarantee}} if guarantee else {}),
            **({"deserved": deserved} if deserved else {}),
            **({"capability": settings.capability.named} if settings.capability.named else {}),
        },
    }


def problems_with_volcano(queues: Sequence[Queue], shares: Literal["proportion", "capacity"]) -> Iterator[Problem]:
    """Queue settings that Volcano does not read; paths are those of the queues.

    They depend on the plugin that shares the cluster among queues:

    pkg/scheduler/plugins/proportion/proportion.go reads weights, but neither `deserved` nor parents;
    pkg/scheduler/plugins/capacity/capacity.go reads `deserved` and parents, but no weights.
    """
    other = "proportion" if shares == "capacity" else "capacity"
    for queue in queues:
        settings = queue.settings
        # A weight of 1 is the same as no weight.
        unread = (
            {"weight": (settings.weight or 1) > 1}
            if shares == "capacity"
            else {"deserved": bool(settings.deserved.named), "parent": settings.parent is not None}
        )
        for key, is_set in unread.items():
            if is_set:
                message = (
                    f"has no effect while Volcano's queueShares are {shares}: remove it, or set "
                    f"scheduler.volcano.scheduler.queueShares to {other}"
                )
                yield Problem((*queue.path, key), None, message, "queue-shares")
        for part in ("guarantee", "deserved", "capability"):
            if getattr(settings, part).gpus_by_product:
                message = "Volcano counts GPUs of all products together: set gpus"
                yield Problem((*queue.path, part, "gpusByProduct"), None, message, "gpus-by-product")


def _nonzero(amounts: dict[str, str]) -> dict[str, str]:
    """The amounts other than 0: Volcano treats 0 as more than an amount that is not set."""
    return {resource: value for resource, value in amounts.items() if value != "0"}


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
        "apiVersion": _POLICIES_VERSION,
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
        "apiVersion": _POLICIES_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": kinds.name},
        "spec": {
            "policyName": kinds.name,
            "validationActions": ["Deny"],
            "paramRef": {"selector": {"matchLabels": dict(OF_THE_STACK)}, "parameterNotFoundAction": "Allow"},
        },
    }
