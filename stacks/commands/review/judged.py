"""The policies over all objects that a stack file makes, before and after a change of it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.cml.manifests import nodes
from policies.cml import cluster_on_cml
from policies.configuration import Configuration
from policies.judge import Finding, Judge
from policies.values import Object
from stacks.objects.stack import render_as
from stacks.settings import StackSettings

Key = tuple[str, str, str]
"""Rule, place and message."""


@dataclass(frozen=True)
class Judged:
    """The violations after a change, without those that an exception lets pass."""

    new: tuple[Finding, ...]
    """Those that the change adds."""
    old: tuple[Finding, ...]
    """Those that exist before it, too."""
    mended: int
    """Number of violations that the change removes."""

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """Those of mandatory rules, the new ones first."""
        return tuple(each for each in (*self.new, *self.old) if each.blocks)


def judged(configuration: Configuration, name: str, before: StackSettings | None, after: StackSettings) -> Judged:
    """The violations of a stack. `name`: its name, by which the configuration has levels. `before` None: it is new."""
    was = Counter(map(_key, _violations(configuration, name, before))) if before else Counter[Key]()
    new: list[Finding] = []
    old: list[Finding] = []
    for each in _violations(configuration, name, after):
        key = _key(each)
        (old if was[key] else new).append(each)
        was[key] -= was[key] > 0
    return Judged(tuple(new), tuple(old), was.total())


def _violations(configuration: Configuration, name: str, stack: StackSettings) -> Iterator[Finding]:
    judge = Judge(configuration.with_stack(name, stack.policies), name)
    bodies = [*(made.body for made in render_as(stack, name).values()), *_on_cml(stack, name)]
    for each in judge.report(map(Object, bodies)).findings:
        if each.known and each.exception is None:
            yield each


def _on_cml(stack: StackSettings, name: str) -> Iterator[Mapping[str, Any]]:
    if cml := stack.cml:
        yield from (cluster_on_cml(nodes(cml, cluster, name)) for cluster in cml.clusters)


def _key(finding: Finding) -> Key:
    return finding.rule.id, finding.place, finding.message
