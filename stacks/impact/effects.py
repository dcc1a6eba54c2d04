"""What an edit can do to an object, from nothing to the end of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """In the order of their harm, the least first."""

    NOTHING = "nothing"
    IN_PLACE = "in place"
    CREATES = "creates"
    NEW_PODS = "only new pods"
    """What runs stays as it was, until each pod is made anew."""
    IGNORED = "silently ignored"
    """KubeRay takes the edit, and never acts on it."""
    ROLLING = "rolling"
    REFUSED = "fails"
    """`pulumi up` ends with an error, and what runs stays as it is."""
    STRANDS = "strands new workers"
    """What runs goes on; workers that are added cannot join it."""
    ORPHANS = "orphans pods"
    """Pods run on, with their GPUs, and nobody counts or ends them."""
    ENDS = "ends pods"
    RECREATES = "recreates pods"
    REPLACES = "deletes and makes anew"
    DELETES = "deletes"

    @property
    def harm(self) -> int:
        """Its place in the order of harm."""
        return list(Verdict).index(self)

    @property
    def hurts(self) -> bool:
        """Whether something that runs is stopped, lost, or does not work as before."""
        return self.harm >= Verdict.STRANDS.harm


@dataclass(frozen=True)
class Range:
    """How many: a number, or what is known of it. `most` None: no limit is set."""

    least: int
    most: int | None

    def __str__(self) -> str:
        if self.most is None:
            return f"{self.least} or more"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"

    def __bool__(self) -> bool:
        return self.most != 0

    def pods(self) -> str:
        """With the word for it: `1 pod`."""
        return f"{self} pod{'' if self == Range(1, 1) else 's'}"


NONE = Range(0, 0)


@dataclass(frozen=True)
class Effect:
    """One thing that happens to an object."""

    verdict: Verdict

    says: str
    """What happens, for who does not know KubeRay: `deletes 3 of 5 pods of worker group a100-8gpu`."""

    reason: str = ""

    safer: str = ""
    """What to do instead; empty where nothing is lost."""

    source: str = ""
    """Where the reason can be looked up: a file of KubeRay, Ray or this project."""

    ended: Range = NONE
    """Pods that are stopped."""

    made: Range = NONE
    """Pods that are made."""

    groups: tuple[str, ...] = ()
    """The groups whose pods it is about, `headgroup` for the head's. None: all of the object's."""

    busy: Range | None = None
    """Of the pods that are stopped, busy or not, those that are busy now; None: that is not known."""


@dataclass(frozen=True)
class ObjectImpact:
    """What happens to an object; to none of its parts: nothing."""

    kind: str
    name: str
    """`<namespace>/<name>`, or the name alone where it has no namespace."""
    effects: tuple[Effect, ...] = ()

    busy_unknown: str = ""
    """Why it could not be told which of its pods are busy; empty where it was, or where nobody asked."""

    @property
    def verdict(self) -> Verdict:
        """The worst."""
        return worst(effect.verdict for effect in self.effects)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most harmful one; nothing where there is none."""
    return max(verdicts, key=lambda each: each.harm, default=Verdict.NOTHING)


def impact(kind: str, name: str, effects: Iterable[Effect]) -> ObjectImpact:
    """The impact, with the worst effect first."""
    return ObjectImpact(kind, name, tuple(sorted(effects, key=lambda each: -each.verdict.harm)))
