"""What an edit does to the operator and to what schedules. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .differences import differences
from .effects import Effect, ObjectImpact, Verdict, impact

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..settings import StackSettings


def of_programs(before: StackSettings, after: StackSettings) -> Iterator[ObjectImpact]:
    """The operator, Volcano and Kueue, where their settings are others."""
    if after.platform:
        return
    was, will = _said(before.operator_in_force), _said(after.operator_in_force)
    yield impact("Operator", "KubeRay", _of_operator(was, will))
    for name in ("volcano", "kueue"):
        of = [_said(getattr(stack.scheduler, name) if stack.scheduler else None) for stack in (before, after)]
        yield impact("Scheduler", name.capitalize(), _of_scheduler(*of))


def _of_operator(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Effect]:
    changed = sorted({path[0] for path in differences(before, after)})
    if "namespace" in changed:
        yield Effect(
            Verdict.REPLACES,
            f"namespace {before['namespace']} -> {after['namespace']}: the operator is made there and goes here; "
            "RayClusters run on, and what is in the old namespace, such as a shared Redis, goes with it",
            "Deployments, Roles and Secrets are of a namespace",
            "keep the namespace",
            "components/operator/manifests.py",
        )
    elif "version" in changed:
        yield Effect(
            Verdict.ROLLING,
            f"version {before['version']} -> {after['version']}: KubeRay's CRDs are updated, then the operator "
            "restarts. Pods of RayClusters stay, also with upgradeStrategy Recreate; for some seconds "
            "nothing is scaled",
            "an operator of another version notes its own in the head's pod, and makes none anew for it",
            "",
            "kuberay ray-operator/controllers/ray/raycluster_controller.go: shouldRecreatePodsForUpgrade",
        )
    elif changed:
        yield Effect(
            Verdict.ROLLING,
            f"{', '.join(changed)}: the operator restarts. Pods of RayClusters stay; "
            "for some seconds nothing is scaled",
            "its settings are arguments of its pod",
            "",
            "components/operator/manifests.py",
        )


def _of_scheduler(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Iterator[Effect]:
    if before == after:
        return
    if before is None:
        yield Effect(
            Verdict.CREATES, "is installed; RayClusters that run were not scheduled by it, and are not until made anew"
        )
    elif after is None:
        yield Effect(
            Verdict.DELETES,
            "is removed: pods that run stay, and those that wait for it wait for good",
            "pods name their scheduler when they are made",
            "make RayClusters without a queue anew first",
        )
    else:
        changed = ", ".join(sorted({path[0] for path in differences(before, after)}))
        yield Effect(
            Verdict.ROLLING,
            f"{changed}: its pods are made anew. Pods of RayClusters stay; for some seconds none is placed",
        )


def _said(settings: BaseModel | None) -> Any:
    return settings.model_dump(mode="json", by_alias=True) if settings else None
