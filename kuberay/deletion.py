"""Deletion of a RayJob's cluster after the job has ended: deletionStrategy (validation.go, rayjob_types.go)."""

import itertools
from collections.abc import Mapping

from core.problems import Path

from .rules import Body, Found, problem

_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
"""A later policy must not apply before an earlier one (validateTTLConsistency)."""

_OF_CLUSTER = ("DeleteCluster", "DeleteWorkers")


def check(spec: Body, path: Path, gate: bool, autoscaling: bool) -> Found:
    """The rules on a RayJob's deletionStrategy (validateDeletionConfiguration).

    `gate`: whether the feature gate is on; `autoscaling`: whether the job's cluster has the autoscaler.
    """
    strategy = spec.get("deletionStrategy")
    if strategy is None:
        return
    at = (*path, "deletionStrategy")
    if not gate:
        message = (
            "deletionStrategy needs the feature gate RayJobDeletionPolicy of the operator: enable it, or remove this"
        )
        yield problem("deletion-feature-gate", at, None, message)
    rules, legacy = strategy.get("deletionRules"), [name for name in ("onSuccess", "onFailure") if name in strategy]
    if rules is not None and legacy:
        message = f"deletionRules cannot stand beside {' and '.join(legacy)}: write these as rules too"
        yield problem("deletion-strategy-style", at, None, message)
    elif rules is None and len(legacy) < 2:
        message = "deletionStrategy needs deletionRules, or both onSuccess and onFailure: add them"
        yield problem("deletion-strategy-style", at, None, message)
    if rules and spec.get("shutdownAfterJobFinishes"):
        message = "deletionRules and shutdownAfterJobFinishes exclude each other: remove shutdownAfterJobFinishes"
        yield problem("deletion-rules-alone", (*path, "shutdownAfterJobFinishes"), True, message)
    selects = bool(spec.get("clusterSelector"))
    if rules:
        yield from _rules(rules, (*at, "deletionRules"), selects, autoscaling)
    for name in legacy if rules is None and len(legacy) == 2 else ():
        policy = strategy[name].get("policy")
        yield from _legacy(
            policy, (*at, name, "policy"), bool(spec.get("shutdownAfterJobFinishes")), selects, autoscaling
        )


def _legacy(policy: str | None, path: Path, shutdown: bool, selects: bool, autoscaling: bool) -> Found:
    """validateLegacyDeletionPolicies."""
    if policy is None:
        message = "no policy is said: set it to DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone"
        yield problem("deletion-policy", path, None, message)
    else:
        yield from _possible(policy, path, selects, autoscaling)
    if policy == "DeleteNone" and shutdown:
        message = "DeleteNone contradicts shutdownAfterJobFinishes: remove one of them"
        yield problem("deletion-policy", path, policy, message)


def _possible(policy: str, path: Path, selects: bool, autoscaling: bool) -> Found:
    if selects and policy in _OF_CLUSTER:
        message = f"{policy} is not for a cluster that clusterSelector selects: use DeleteSelf or DeleteNone"
        yield problem("deletion-policy", path, policy, message)
    elif autoscaling and policy == "DeleteWorkers":
        message = (
            "DeleteWorkers is not possible with autoscaling: use DeleteCluster, or set enableInTreeAutoscaling to false"
        )
        yield problem("deletion-policy", path, policy, message)


def _rules(rules: list[Body], path: Path, selects: bool, autoscaling: bool) -> Found:
    """validateDeletionRules, and the validation rule of the CRD on a condition."""
    seen: dict[str, dict[str, tuple[int, int]]] = {}
    for index, rule in enumerate(rules):
        policy, condition = rule["policy"], rule["condition"]
        statuses = [name for name in ("jobStatus", "jobDeploymentStatus") if name in condition]
        if len(statuses) != 1:
            message = "a condition is of one of jobStatus and jobDeploymentStatus: give one of them"
            yield problem("deletion-condition", (*path, index, "condition"), condition, message)
            continue
        impossible = list(_possible(policy, (*path, index, "policy"), selects, autoscaling))
        if impossible:
            yield from impossible
            continue
        event = f"{statuses[0]} {condition[statuses[0]]}"
        times = seen.setdefault(event, {})
        if policy in times:
            message = f"there are two rules for {policy} on {event}: remove one"
            yield problem("deletion-rule-twice", (*path, index), policy, message)
            continue
        times[policy] = condition["ttlSeconds"], index
    for event, times in seen.items():
        yield from _order(event, times, path)


def _order(event: str, times: Mapping[str, tuple[int, int]], path: Path) -> Found:
    """validateTTLConsistency: first the workers, then the cluster, then the job."""
    ordered = [policy for policy in _ORDER if policy in times]
    for earlier, later in itertools.pairwise(ordered):
        seconds, index = times[later]
        if seconds < times[earlier][0]:
            message = (
                f"on {event} {later} comes after {seconds} s, before {earlier} after {times[earlier][0]} s: "
                f"give it {times[earlier][0]} or more"
            )
            yield problem("deletion-order", (*path, index, "condition", "ttlSeconds"), seconds, message)
