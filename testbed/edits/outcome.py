"""Compares the effect of an `up` on busy workers with the prediction of `impact`. Pure functions."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from components.ray_cluster.request import scales
from kuberay.edits import Verdict
from stacks.commands.impact.comparison import Impact
from stacks.commands.impact.effects import Effect
from stacks.commands.impact.ray_pods import Known
from testbed.edits.autoscalers import Worker

Running = Mapping[str, Known]
"""RayClusters with their pods, by `<namespace>/<name>`."""


@dataclass(frozen=True)
class Outcome:
    """The result of one `up`."""

    code: int
    output: str

    busy: frozenset[Worker]
    """Workers that were busy when it began."""

    lost: frozenset[Worker]
    """Those of them whose pods were deleted, but not by an autoscaler."""

    unpredicted: frozenset[Worker]
    """Those of the lost workers that `impact` had not predicted, and could have."""

    set_back: tuple[str, ...]
    """Worker groups whose replicas differ from those that their autoscaler set, each with both numbers."""


def gone(busy: Iterable[Worker], ended: Iterable[str], after: Running) -> frozenset[Worker]:
    """Busy workers whose pods do not exist any more. `ended`: pods that autoscalers have deleted."""
    live = {pod["metadata"]["name"] for known in after.values() for pod in known.pods}
    return frozenset(worker for worker in busy if worker.pod not in live and worker.pod not in ended)


def unpredicted(lost: Iterable[Worker], impact: Impact) -> frozenset[Worker]:
    """Lost workers whose worker group has no effect in `impact` that ends busy pods."""
    effects = {each.name: [effect for effect in each.effects if _ends_busy(effect)] for each in impact.objects}
    return frozenset(
        worker
        for worker in lost
        if not any(not effect.groups or worker.group in effect.groups for effect in effects.get(worker.cluster, ()))
    )


def switched_off(before: Running, after: Running, scaled: Set[str]) -> set[str]:
    """RayClusters whose workers `impact` could not all know: their autoscaler has scaled since, and was switched off.
    KubeRay then deletes any of the workers beyond `replicas`.

    `scaled`: RayClusters that were scaled after they were read as `before`.
    """
    both = before.keys() & after.keys() & scaled
    return {name for name in both if scales(before[name].body) and not scales(after[name].body)}


def _ends_busy(effect: Effect) -> bool:
    """Effects that only end idle pods, or drain, end no busy pods here: simulated pods have no Ray to ask."""
    return bool(effect.ended) and effect.verdict.harm >= Verdict.ENDS.harm


def set_back(autoscaled: Mapping[tuple[str, str], int], after: Running) -> list[tuple[str, str, str]]:
    """RayCluster, worker group, and a sentence for each group whose replicas differ from those that its autoscaler
    set."""
    found = []
    for (cluster, group), replicas in autoscaled.items():
        if cluster not in after or not scales(after[cluster].body):
            continue
        live = {each["groupName"]: each.get("replicas") for each in after[cluster].body["spec"]["workerGroupSpecs"]}
        if group in live and live[group] != replicas:
            found.append((cluster, group, f"{cluster} {group}: {live[group]} where its autoscaler had set {replicas}"))
    return found
