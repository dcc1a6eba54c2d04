"""Limits of pods: the pools that a pod may run on, quotas and queues, and the setting of overcommitment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from components.tenant.demand import Usage
from core.body import ReadOnlyBody
from core.nodes import GPU_PRODUCT_LABEL, NodePool, Taint
from core.types import Settings

_NONE = Decimal(0)


class CapacitySettings(Settings):
    """Overcommitment: promises that the nodes cannot keep all at once. `ray-platform plan` shows them."""

    overcommitment: Literal["allowed", "warning", "error"] = "warning"
    """The action if not all RayClusters can start at the same time, or if the tenants' limits together exceed the
    nodes.
    `error`: `check` and previews refuse it. `warning`: `plan` reports it. `allowed`: it is not reported."""


def eligible(spec: ReadOnlyBody, pools: Sequence[NodePool]) -> tuple[NodePool, ...]:
    """The pools whose nodes a pod with that spec may run on.

    It evaluates nodeSelector, required node affinity and tolerations. A label that no pool of the stack file has, such
    as a zone, may be on any node.
    """
    known = {key for pool in pools for key in _labels(pool)}
    return tuple(pool for pool in pools if _selected(spec, pool, known) and _tolerated(spec, pool))


def _labels(pool: NodePool) -> dict[str, str]:
    return {**pool.labels, **({GPU_PRODUCT_LABEL: pool.gpu_product} if pool.gpu_product else {})}


def _selected(spec: ReadOnlyBody, pool: NodePool, known: set[str]) -> bool:
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


def _matches(expression: ReadOnlyBody, labels: Mapping[str, str]) -> bool:
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


def _tolerated(spec: ReadOnlyBody, pool: NodePool) -> bool:
    tolerations = spec.get("tolerations") or ()
    return all(
        taint.effect == "PreferNoSchedule" or any(_tolerates(each, taint) for each in tolerations)
        for taint in pool.taints
    )


def _tolerates(toleration: ReadOnlyBody, taint: Taint) -> bool:
    if toleration.get("effect") not in (None, "", taint.effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.key)
    return toleration.get("key") == taint.key and (toleration.get("value") or "") == taint.value


@dataclass
class Account:
    """The limits of a group of pods, and what is left of them."""

    limits: Mapping[str, Decimal]
    """The limits, by entries of a usage."""

    used: Usage = field(default_factory=dict)

    name: str = ""
    """For messages: `queue research`."""

    def admits(self, usage: Usage, at_most: int) -> int:
        """How many times the usage still fits, up to `at_most`."""
        for entry, most in self.limits.items():
            if not at_most:
                break
            left, one = most - self.used.get(entry, _NONE), usage.get(entry, _NONE)
            if left < one or left < 0:
                return 0
            if one:
                at_most = min(at_most, int(left // one))
        return at_most

    def take(self, usage: Usage, times: int = 1) -> None:
        for entry in self.limits if times else ():
            if entry in usage:
                self.used[entry] = self.used.get(entry, _NONE) + usage[entry] * times


Accounts = Mapping[str, Sequence[Account]]
"""The accounts of pods, by their owner."""

NO_ACCOUNTS: Accounts = {}
