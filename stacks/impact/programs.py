"""What an edit does to the operator and the scheduler. Pure functions."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from ..settings import StackSettings
from .differences import differences
from .effects import Effect, ObjectImpact, Verdict, impact
from .operator_version import of_marks, of_version
from .ray_clusters import ray_clusters


def of_programs(before: StackSettings | None, after: StackSettings) -> Iterator[ObjectImpact]:
    """The operator, Volcano and Kueue, if their settings changed. `before` None: the stack is new."""
    if after.platform:
        return
    yield impact("Operator", "KubeRay", _of_operator(before, after))
    for name in ("volcano", "kueue"):
        of = [_installed(getattr(stack.scheduler, name, None) if stack else None) for stack in (before, after)]
        yield impact("Scheduler", name.capitalize(), _of_scheduler(*of))


def _of_operator(stack: StackSettings | None, edited: StackSettings) -> Iterator[Effect]:
    before, after = (_installed(each.operator_in_force if each else None) for each in (stack, edited))
    if after is None:
        if before is not None:
            yield _let_go("RayClusters run on, but nobody makes, scales or mends their pods until another is there")
        return
    if stack is None or before is None:
        yield Effect(Verdict.CREATES, "is installed; `pulumi up` fails where one is there already")
        return
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
        yield from of_version(stack.operator_in_force, edited.operator_in_force, ray_clusters(stack))
    elif changed:
        yield from of_marks(stack.operator_in_force, edited.operator_in_force, ray_clusters(stack))
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
        yield _let_go("pods that run stay, and those that it should place wait for good")
    else:
        changed = ", ".join(sorted({path[0] for path in differences(before, after)}))
        yield Effect(
            Verdict.ROLLING,
            f"{changed}: its pods are made anew. Pods of RayClusters stay; for some seconds none is placed",
        )


def _let_go(then: str) -> Effect:
    return Effect(
        Verdict.DELETES,
        f"what the stack has installed is deleted: {then}",
        "the stack file installs it no more",
        "keep install: manifests in this stack; to hand it over, remove it from the stack's state with `pulumi state "
        "delete` first",
        "docs/operations.md, Removing things",
    )


def _installed(settings: BaseModel | None) -> dict[str, Any] | None:
    """The settings of a program that the stack installs; None if it is an existing one, or not set."""
    configured = settings.model_dump(mode="json", by_alias=True) if settings else None
    return configured if configured and configured["install"] == "manifests" else None
