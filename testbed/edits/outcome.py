"""What an `up` did to busy workers, held against what `impact` had said of it. Pure functions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stacks.impact.comparison import Impact
from stacks.impact.effects import Effect, Verdict
from stacks.impact.ray_pods import Known

from .autoscalers import Worker

Running = Mapping[str, Known]
"""RayClusters with their pods, by `<namespace>/<name>`."""


@dataclass(frozen=True)
class Outcome:
    """Of one `up`."""

    code: int
    output: str

    busy: frozenset[Worker]
    """Who was busy when it began."""

    lost: frozenset[Worker]
    """Who of them is gone, and was not let go by an autoscaler."""

    unforetold: frozenset[Worker]
    """Who of these `impact` had not named."""

    set_back: tuple[str, ...]
    """Worker groups that have not as many replicas as their autoscaler has said, each with both numbers."""


def gone(busy: Iterable[Worker], ended: Iterable[str], after: Running) -> frozenset[Worker]:
    """Busy workers whose pods are no more. `ended`: pods that autoscalers have let go."""
    there = {pod["metadata"]["name"] for known in after.values() for pod in known.pods}
    return frozenset(worker for worker in busy if worker.pod not in there and worker.pod not in ended)


def unforetold(lost: Iterable[Worker], impact: Impact) -> frozenset[Worker]:
    """Those of whose worker group `impact` does not say that pods end, busy or not."""
    effects = {each.name: [effect for effect in each.effects if _ends_busy(effect)] for each in impact.objects}
    return frozenset(
        worker
        for worker in lost
        if not any(not effect.groups or worker.group in effect.groups for effect in effects.get(worker.cluster, ()))
    )


def _ends_busy(effect: Effect) -> bool:
    """What goes only when it is idle, or drains, hurts nothing on simulated pods, whose Ray nobody can ask."""
    return bool(effect.ended) and effect.verdict.harm >= Verdict.ENDS.harm


def set_back(said: Mapping[tuple[str, str], int], after: Running) -> list[tuple[str, str, str]]:
    """RayCluster and worker group of those that have other replicas than their autoscaler has said, and a sentence."""
    found = []
    for (cluster, group), replicas in said.items():
        spec = after[cluster].body["spec"] if cluster in after else {}
        if not spec.get("enableInTreeAutoscaling"):
            continue
        there = {each["groupName"]: each.get("replicas") for each in spec["workerGroupSpecs"]}
        if group in there and there[group] != replicas:
            found.append((cluster, group, f"{cluster} {group}: {there[group]} where its autoscaler said {replicas}"))
    return found
