"""What an edit does to the operator, and with it to running pods, and to the scheduler. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from components.operator.settings import OperatorSettings
from core.versions import release_of
from kuberay.edits import Verdict, differences
from kuberay.releases import HOSTS_GATE, NO_WAY_BACK, RELEASES, groups_with_hosts, marks_hosts, newer

from ..settings import StackSettings
from .effects import Effect, ObjectImpact, impact
from .sources import ray_clusters

_CONTROLLER = "kuberay ray-operator/controllers/ray/raycluster_controller.go"
_UPGRADE = "components/operator/upgrade.py"


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


def of_version(
    before: OperatorSettings, after: OperatorSettings, clusters: Mapping[str, Mapping[str, Any]]
) -> Iterator[Effect]:
    """`clusters`: the RayClusters that the operator has, by `<namespace>/<name>`."""
    change = f"version {before.version} -> {after.version}"
    was, will = release_of(before.version), release_of(after.version)
    if newer(was, will):
        yield Effect(Verdict.REFUSED, f"{change}: the preview refuses to go back", NO_WAY_BACK, source=_UPGRADE)
        return
    yield Effect(
        Verdict.ROLLING,
        f"{change}: KubeRay's CRDs are updated, then the operator restarts. Pods of RayClusters stay, also with "
        "upgradeStrategy Recreate; for some seconds nothing is scaled",
        "an operator of another version notes its own in the head's pod, and makes none anew for it",
        "edit RayClusters in another `up`: with upgradeStrategy Recreate, what is edited in this one counts as done",
        f"{_CONTROLLER}: shouldRecreatePodsForUpgrade",
    )
    for release in reversed(RELEASES):
        if newer(release, was) and not newer(release, will) and (has := RELEASES[release].new_pods):
            yield Effect(
                Verdict.NEW_PODS,
                f"pods that run stay as they are; those that are made from now on have {has}",
                f"KubeRay {release} makes them so",
                source="kuberay ray-operator/controllers/ray/common/pod.go",
            )
    yield from of_marks(before, after, clusters)


def of_marks(
    before: OperatorSettings, after: OperatorSettings, clusters: Mapping[str, Mapping[str, Any]]
) -> Iterator[Effect]:
    """What happens to multi-host workers when the operator begins to identify them by labels."""
    if marks_hosts(before.version, before.feature_gates) or not marks_hosts(after.version, after.feature_gates):
        return
    if named := list(_with_hosts(clusters)):
        yield Effect(
            Verdict.REFUSED,
            f"the preview refuses it while workers with several hosts run: {', '.join(named)}",
            "KubeRay would know these workers by marks that theirs have not, make all of them a second time, and never "
            "end the first ones",
            f"set operator.featureGates to {{{HOSTS_GATE}: false}} in the same edit",
            f"{_CONTROLLER}: reconcileMultiHostWorkerGroup",
        )


def _with_hosts(clusters: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for name, body in clusters.items():
        yield from (f"{name} {group}" for group in groups_with_hosts(body))
