"""Rules: a rule is a function from a subject to the violations in it."""

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from core.types import Settings
from policies.cel import CelCheck
from policies.values import Change, Violation

Violations: TypeAlias = Iterable[Violation]
Changes: TypeAlias = Iterable[Change]


class Severity(StrEnum):
    """Impact of a violation."""

    CRITICAL = "critical"
    """Gives an attacker access, or a way out of a container."""

    HIGH = "high"
    """Loses data or a cluster, or grants rights that nobody needs."""

    MEDIUM = "medium"
    """Causes failures or unnecessary costs."""

    LOW = "low"
    """Good practice that not every cluster can follow: advisory, unless its level is set."""


class NoOptions(Settings):
    """Options of a rule without options."""


@dataclass(frozen=True)
class Rule:
    """A rule. Its id is a public contract: exceptions and levels refer to it."""

    id: str
    severity: Severity
    what: str
    """The requirement, as a statement that is true without a violation."""
    why: str
    source: str
    """The evidence: a page, or a file of KubeRay or Ray."""
    fix: str
    """What to change."""
    family: str
    """Module of the rule."""
    subject: type
    """Type of the argument of the check: one of `walk.Subject`."""
    kinds: tuple[str, ...]
    """Kinds of objects that the rule applies to; empty for all."""
    options: type[Settings]
    check: Callable[..., Violations]
    remedy: Callable[[Any], Changes] | None = None
    """Fixes a violation where that is safe; called only at level `remediate`."""
    cel: CelCheck | None = None
    """The same check in CEL, which the API server can enforce. None for rules about several objects together, about
    cluster-scoped objects, about objects that only administrators create (NetworkPolicies, Roles, quotas), about how
    Pulumi creates objects, about texts that have to be parsed, about what Pod Security admission or the CRDs' schema
    refuse anyway, and for advice."""

    @property
    def mends(self) -> str:
        """What the remedy does, in one sentence; empty without a remedy."""
        return " ".join((inspect.getdoc(self.remedy) or "").split()) if self.remedy else ""

    def violations(self, subject: Any, options: Settings) -> Violations:
        """Violations in one subject. The iteration raises NotKnownYetError."""
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
    """Makes a rule of a check. The type of the first argument is the subject, that of the second the options."""

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
