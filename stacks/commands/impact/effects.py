"""The effects that an edit can have on an object, from none to its deletion, and those that a kind of object has."""

from collections.abc import Iterable
from dataclasses import dataclass

from kuberay.edits import Verdict


@dataclass(frozen=True)
class Range:
    """A number of pods, or its known bounds. `most` None: no limit is set."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __bool__(self) -> bool:
        return self.most != 0

    def pods(self) -> str:
        """With the noun: `1 pod`."""
        return f"{self} pod{'' if self == Range(1, 1) else 's'}"


NONE = Range(0, 0)


@dataclass(frozen=True)
class Effect:
    verdict: Verdict

    text: str
    """What happens, for readers who do not know KubeRay: `deletes 3 of 5 pods of worker group a100-8gpu`."""

    reason: str = ""

    safer: str = ""
    """What to do instead, or how to have the edit applied; empty if nothing is lost."""

    source: str = ""
    """A file of KubeRay, Ray or this project that shows the reason."""

    ended: Range = NONE
    """Pods that are stopped."""

    made: Range = NONE
    """Pods that are created."""

    groups: tuple[str, ...] = ()
    """The groups of the affected pods, `headgroup` for the head's. Empty: all groups of the object."""

    busy: Range | None = None
    """How many of the pods that are stopped, busy or not, are busy now; None: unknown."""

    limit: str = ""
    """Time after which work that still runs on these pods is lost; empty: none is."""

    detail: str = ""
    """More than most readers need, such as each verb of a role; the short reports leave it out."""


@dataclass(frozen=True)
class ObjectImpact:
    """The effects on an object; no effects if nothing happens to it."""

    kind: str
    name: str
    """`<namespace>/<name>`, or the name alone where it has no namespace."""
    effects: tuple[Effect, ...] = ()

    busy_unknown: str = ""
    """Why its busy pods are unknown; empty if they are known, or if nobody asked."""

    @property
    def verdict(self) -> Verdict:
        """The worst effect."""
        return worst(effect.verdict for effect in self.effects)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most harmful one; "nothing" if there is none."""
    return max(verdicts, key=lambda each: each.harm, default=Verdict.NOTHING)


def impact(kind: str, name: str, effects: Iterable[Effect]) -> ObjectImpact:
    """The impact, with the worst effect first."""
    return ObjectImpact(kind, name, tuple(sorted(effects, key=lambda each: -each.verdict.harm)))


@dataclass(frozen=True)
class Fixed:
    """Immutable fields of a kind's spec: Pulumi deletes and recreates the object, or refuses to."""

    fields: frozenset[str]
    replaced: str
    reason: str
    safer: str
    source: str
    verdict: Verdict = Verdict.REPLACES


@dataclass(frozen=True)
class Kind:
    """What edits of its objects mean for running pods."""

    made: str
    changed: str
    gone: str
    losing: Verdict = Verdict.REMOVES
    """The verdict of its deletion. If it is not the default, the object is shown even if its owner is shown."""
    safer: str = ""
    """How to delete it safely."""
    fixed: Fixed | None = None
