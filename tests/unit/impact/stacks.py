"""Stack files before and after an edit."""

from typing import Any

from kuberay.edits import Verdict
from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.effects import Effect
from tests.unit.planning.stacks import cluster, stack, tenant

EIGHT = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}]}
"""Workers of a whole node, none of which always runs."""


def ray(**settings: Any) -> dict[str, Any]:
    """A RayCluster `training` with one worker group, a100-8gpu."""
    return cluster("training", **{"workers": EIGHT, **settings})


def effects(before: dict[str, Any], after: dict[str, Any], **both: Any) -> list[Effect]:
    """The effects on a tenant's only RayCluster."""
    return effects_on("RayCluster", impact_of(stack(tenant("a", before), **both), stack(tenant("a", after), **both)))


def effects_on(kind: str, impact: Impact) -> list[Effect]:
    """The effects on objects of a kind."""
    return [effect for each in impact.objects if each.kind == kind for effect in each.effects]


def verdicts(found: list[Effect]) -> set[Verdict]:
    """Their verdicts."""
    return {effect.verdict for effect in found}
