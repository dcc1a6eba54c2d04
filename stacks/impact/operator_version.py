"""What another version of the operator does to running pods. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from components.operator.settings import OperatorSettings
from core.versions import release_of
from kuberay.supported import HOSTS_GATE, NO_WAY_BACK, RELEASES, groups_with_hosts, marks_hosts, newer

from .effects import Effect, Verdict

_CONTROLLER = "kuberay ray-operator/controllers/ray/raycluster_controller.go"
_UPGRADE = "components/operator/upgrade.py"


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
