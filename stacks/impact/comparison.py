"""What an edit of a stack file does to all that the stack makes. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.operator.supported import release_of

from .effects import ObjectImpact, Verdict, worst
from .kuberay_rules import RULES
from .pods import Counts
from .ray_cluster import Known, of_ray_cluster
from .ray_clusters import ray_clusters

if TYPE_CHECKING:
    from ..settings import StackSettings

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Live:
    """RayClusters as they run, by `<namespace>/<name>`."""

    bodies: Mapping[str, Body]
    pods: Mapping[str, Counts]


@dataclass(frozen=True)
class Impact:
    """What an edit does."""

    objects: tuple[ObjectImpact, ...]
    """Those to which something happens, the worst first."""

    notes: tuple[str, ...] = ()
    """What has to be known to read it."""

    @property
    def verdict(self) -> Verdict:
        """The worst."""
        return worst(each.verdict for each in self.objects)


def impact_of(before: StackSettings, after: StackSettings) -> Impact:
    """What it does when the stack file that said `before` says `after`."""
    was = {name: Known(body, None, _release(before)) for name, body in ray_clusters(before).items()}
    return _sorted(_of_ray_clusters(was, ray_clusters(after)), _notes(before))


def _of_ray_clusters(before: Mapping[str, Known], after: Mapping[str, Body]) -> Iterator[ObjectImpact]:
    for name in dict.fromkeys([*before, *after]):
        yield of_ray_cluster(name, before.get(name), after.get(name))


def _sorted(objects: Iterator[ObjectImpact], notes: Iterator[str]) -> Impact:
    found = [each for each in objects if each.effects]
    return Impact(tuple(sorted(found, key=lambda each: -each.verdict.harm)), tuple(notes))


def _release(stack: StackSettings) -> str:
    return release_of(stack.operator.version)


def _notes(stack: StackSettings) -> Iterator[str]:
    if (release := _release(stack)) not in RULES:
        yield f"The rules are those of KubeRay {next(iter(RULES))}; this stack has {release}, which may do otherwise."
