"""What a rule is, and how one is written: a function from what it is about to what is wrong there."""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from core.types import Settings

from .cel.check import CelCheck
from .values import Change, Violation

Violations: TypeAlias = Iterable[Violation]
Changes: TypeAlias = Iterable[Change]


class Severity(StrEnum):
    """How much is at stake."""

    CRITICAL = "critical"
    """Somebody else gets in, or out of a container."""

    HIGH = "high"
    """Data or a cluster is lost, or rights are there that nobody needs."""

    MEDIUM = "medium"
    """Something fails or costs more than it has to."""

    LOW = "low"
    """Good practice that not everybody can follow: advisory, unless its level is set."""


class NoOptions(Settings):
    """Of a rule that has nothing to set."""


@dataclass(frozen=True)
class Rule:
    """A rule. Its id is a public contract: exceptions and levels name it."""

    id: str
    severity: Severity
    what: str
    """What holds where the rule is kept."""
    why: str
    source: str
    """Where that can be read: a page, or a file of KubeRay's or Ray's."""
    fix: str
    """What to change."""
    family: str
    """Module that it is written in."""
    subject: type
    """What the check takes: one of `walk.Subject`."""
    kinds: tuple[str, ...]
    """Kinds of objects that it looks into; empty for all."""
    options: type[Settings]
    check: Callable[..., Violations]
    remedy: Callable[[Any], Changes] | None = None
    """What mends a subject that breaks it, where that is safe; asked at level `remediate` alone."""
    cel: CelCheck | None = None
    """The same in CEL, which the API server can enforce. None of rules about several objects together, about objects of
    the whole cluster, about what administrators alone make (NetworkPolicies, Roles, quotas) and about how Pulumi makes
    objects, and of those that are advice."""

    @property
    def mends(self) -> str:
        """What its remedy does, in a sentence; empty where it has none."""
        return " ".join((inspect.getdoc(self.remedy) or "").split()) if self.remedy else ""

    def violations(self, subject: Any, options: Settings) -> Violations:
        """What is wrong with one subject. Raises NotKnownYetError while it is read."""
        return self.check(subject) if self.options is NoOptions else self.check(subject, options)


def rule(
    id_: str,
    severity: Severity,
    *,
    what: str,
    why: str,
    source: str,
    fix: str,
    kinds: tuple[str, ...] = (),
    remedy: Callable[[Any], Changes] | None = None,
    cel: CelCheck | None = None,
) -> Callable[[Callable[..., Violations]], Rule]:
    """Makes a rule of a check: its first argument says by its type what the rule is about, a second one its options."""

    def decorate(check: Callable[..., Violations]) -> Rule:
        hints: Mapping[str, Any] = typing.get_type_hints(check)
        arguments = [hints[name] for name in inspect.signature(check).parameters]
        return Rule(
            id=id_,
            severity=severity,
            what=what,
            why=why,
            source=source,
            fix=fix,
            family=check.__module__.rpartition(".")[2],
            subject=arguments[0],
            kinds=kinds,
            options=arguments[1] if len(arguments) > 1 else NoOptions,
            check=check,
            remedy=remedy,
            cel=cel,
        )

    return decorate
