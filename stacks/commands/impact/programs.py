"""What an edit does to the operator, and with it to running pods, and to the scheduler. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from components.operator.settings import OperatorSettings
from core.versions import release_of
from kuberay.edits import Verdict, differences
from kuberay.releases import HOSTS_GATE, NO_WAY_BACK, RELEASES, groups_with_hosts, marks_hosts, newer
from stacks.commands.impact.effects import Effect, ObjectImpact, impact
from stacks.commands.impact.sources import ray_clusters
from stacks.objects.cml import without_kubernetes
from stacks.settings import StackSettings

_CONTROLLER = "kuberay ray-operator/controllers/ray/raycluster_controller.go"
_UPGRADE = "components/operator/upgrade.py"


def of_programs(before: StackSettings | None, after: StackSettings) -> Iterator[ObjectImpact]:
    """The operator, Volcano and Kueue, if their settings changed. `before` None: the stack is new."""
    if after.platform or without_kubernetes(after):
        return
    yield impact("Operator", "KubeRay", _of_operator(before, after))
    for name in ("volcano", "kueue"):
        of = [_installed(getattr(stack.scheduler, name, None) if stack else None) for stack in (before, after)]
        yield impact("Scheduler", name.capitalize(), _of_scheduler(*of))


def _of_operator(stack: StackSettings | None, edited: StackSettings) -> Iterator[Effect]:
    before, after = (_installed(each.operator_in_force if each else None) for each in (stack, edited))
    if after is None:
        if before is not None:
            yield _removed(
                "RayClusters continue to run, but nothing creates, scales or replaces their pods until another "
                "operator exists"
            )
        return
    if stack is None or before is None:
        yield Effect(Verdict.CREATES, "is installed; `pulumi up` fails if the cluster has an operator already")
        return
    changed = sorted({path[0] for path in differences(before, after)})
    if "namespace" in changed:
        yield Effect(
            Verdict.REPLACES,
            f"namespace {before['namespace']} -> {after['namespace']}: the operator is recreated there; "
            "RayClusters continue to run; all objects in the old namespace, such as a shared Redis, are deleted with "
            "it",
            "Deployments, Roles and Secrets belong to a namespace",
            "keep the namespace",
            "components/operator/manifests.py",
        )
    elif "version" in changed:
        yield from of_version(stack.operator_in_force, edited.operator_in_force, ray_clusters(stack))
    elif changed:
        yield from of_marks(stack.operator_in_force, edited.operator_in_force, ray_clusters(stack))
        yield Effect(
            Verdict.ROLLING,
            f"{', '.join(changed)}: the operator restarts. Pods of RayClusters stay; for some seconds nothing scales",
            "its settings are arguments of its pod",
            "",
            "components/operator/manifests.py",
        )


def _of_scheduler(before: dict[str, Any] | None, after: dict[str, Any] | None) -> Iterator[Effect]:
    if before == after:
        return
    if before is None:
        yield Effect(Verdict.CREATES, "is installed; it does not schedule running RayClusters until they are recreated")
    elif after is None:
        yield _removed("running pods stay, and pods that it should schedule stay pending")
    else:
        changed = ", ".join(sorted({path[0] for path in differences(before, after)}))
        yield Effect(
            Verdict.ROLLING,
            f"{changed}: its pods are recreated. Pods of RayClusters stay; for some seconds no pod is scheduled",
        )


def _removed(then: str) -> Effect:
    return Effect(
        Verdict.DELETES,
        f"the installed objects are deleted: {then}",
        "the stack file no longer installs it",
        "keep install: manifests in this stack; to give it to another owner, first remove it from the stack's state "
        "with `pulumi state delete`",
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
        yield Effect(Verdict.REFUSED, f"{change}: the preview refuses an older version", NO_WAY_BACK, source=_UPGRADE)
        return
    yield Effect(
        Verdict.ROLLING,
        f"{change}: KubeRay's CRDs are updated, then the operator restarts. Pods of RayClusters stay, also with "
        "upgradeStrategy Recreate; for some seconds nothing scales",
        "a new operator only writes its version into the head's pod, and recreates no pod",
        "edit RayClusters in another `up`: with upgradeStrategy Recreate, KubeRay takes edits of this one as applied",
        f"{_CONTROLLER}: shouldRecreatePodsForUpgrade",
    )
    for release in reversed(RELEASES):
        if newer(release, was) and not newer(release, will) and (has := RELEASES[release].new_pods):
            yield Effect(
                Verdict.NEW_PODS,
                f"running pods do not change; new pods have {has}",
                f"KubeRay {release} creates pods with it",
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
            f"the preview refuses the edit while workers with several hosts run: {', '.join(named)}",
            "the new version identifies these workers by labels that the running ones do not have: it would create all "
            "of them a second time, and never end the first ones",
            f"set operator.featureGates to {{{HOSTS_GATE}: false}} in the same edit",
            f"{_CONTROLLER}: reconcileMultiHostWorkerGroup",
        )


def _with_hosts(clusters: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for name, body in clusters.items():
        yield from (f"{name} {group}" for group in groups_with_hosts(body))
