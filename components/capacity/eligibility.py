"""The pools that a pod may run on, as far as the stack file describes their nodes. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from core.nodes import GPU_PRODUCT_LABEL, NodePool, Taint

Body = Mapping[str, Any]


def eligible(spec: Body, pools: Sequence[NodePool]) -> tuple[NodePool, ...]:
    """The pools whose nodes a pod with that spec may run on.

    It evaluates nodeSelector, required node affinity and tolerations. A label that no pool of the stack file has, such
    as a zone, may be on any node.
    """
    known = {key for pool in pools for key in _labels(pool)}
    return tuple(pool for pool in pools if _selected(spec, pool, known) and _tolerated(spec, pool))


def _labels(pool: NodePool) -> dict[str, str]:
    return {**pool.labels, **({GPU_PRODUCT_LABEL: pool.gpu_product} if pool.gpu_product else {})}


def _selected(spec: Body, pool: NodePool, known: set[str]) -> bool:
    labels = _labels(pool)
    for key, value in (spec.get("nodeSelector") or {}).items():
        if key in known and labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(
        all(_matches(each, labels) for each in term.get("matchExpressions") or () if each["key"] in known)
        for term in required.get("nodeSelectorTerms") or ()
    )


def _matches(expression: Body, labels: Mapping[str, str]) -> bool:
    """As in Kubernetes (kubernetes.io, Assigning Pods to Nodes); comparisons of numbers always match."""
    value, values = labels.get(expression["key"]), expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return True


def _tolerated(spec: Body, pool: NodePool) -> bool:
    tolerations = spec.get("tolerations") or ()
    return all(
        taint.effect == "PreferNoSchedule" or any(_tolerates(each, taint) for each in tolerations)
        for taint in pool.taints
    )


def _tolerates(toleration: Body, taint: Taint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    return toleration.get("key") == taint.key and (toleration.get("value") or "") == taint.value
