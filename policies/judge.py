"""Asks the rules about objects. Nothing that a rule could not know passes: it is found, as not known."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date

from core.problems import Path, dotted
from core.types import Settings

from .configuration import Configuration, Level, RuleException
from .rule import Rule
from .rules import RULES
from .values import Change, NotKnownYetError, Object, Violation
from .walk import SUBJECTS, Stack


@dataclass(frozen=True)
class Finding:
    """A violation of a rule, or that it cannot be told yet."""

    rule: Rule
    level: Level
    owner: Object
    path: Path
    message: str
    known: bool = True
    """False where the rule has read what is not known before `pulumi up`."""
    exception: RuleException | None = None
    """What excepts the object."""
    expired: RuleException | None = None
    """What excepted it until some day."""

    @property
    def blocks(self) -> bool:
        """Whether it fails a preview or a command."""
        return self.known and self.level.blocks and self.exception is None

    @property
    def place(self) -> str:
        """Where it is: `RayCluster/team-a/training: spec.rayVersion`."""
        return f"{self.owner}: {dotted(self.path)}" if self.path else str(self.owner)


@dataclass(frozen=True)
class Report:
    """What the rules say of some objects."""

    findings: tuple[Finding, ...]
    objects: int
    exceptions: tuple[RuleException, ...] = ()
    today: date = field(default_factory=date.today)

    def used(self, exception: RuleException) -> int:
        """How many findings it excepts."""
        return sum(each.exception is exception for each in self.findings)

    @property
    def blocked(self) -> bool:
        """Whether a mandatory rule is broken."""
        return any(each.blocks for each in self.findings)


class Judge:
    """The rules as they hold in one environment."""

    def __init__(self, configuration: Configuration, environment: str, today: date | None = None) -> None:
        """`environment`: whose levels hold, in what the configuration says."""
        said = configuration.environment(environment)
        self._exceptions = said.exceptions
        self._today = today or date.today()
        self._rules: dict[type, list[tuple[Rule, Level, Settings]]] = defaultdict(list)
        for rule in RULES:
            weight = said.level_of(rule)
            if weight is not Level.DISABLED:
                self._rules[rule.subject].append((rule, weight, said.options_of(rule)))
        self._remedies = [rule for rule in RULES if rule.remedy and said.level_of(rule) is Level.REMEDIATE]

    def report(self, objects: Iterable[Object]) -> Report:
        """Judges objects one by one, and together."""
        held = tuple(objects)
        findings = [finding for each in held for finding in self.of_object(each)]
        return Report(
            (*findings, *self.of_stack(Stack(held))), objects=len(held), exceptions=self._exceptions, today=self._today
        )

    def of_object(self, owner: Object) -> Iterator[Finding]:
        """What rules about single objects, their pods and containers find."""
        for kind, subjects in SUBJECTS.items():
            asked = [each for each in self._rules[kind] if not each[0].kinds or owner.kind in each[0].kinds]
            if not asked:
                continue
            try:
                for subject in subjects(owner):
                    for rule, weight, options in asked:
                        yield from self._asked(rule, weight, options, subject, owner)
            except NotKnownYetError as unknown:
                # Not even where the subjects are is known.
                for rule, weight, _ in asked:
                    yield self._unknown(rule, weight, unknown, owner)

    @property
    def mends(self) -> bool:
        """Whether some rule mends what breaks it."""
        return bool(self._remedies)

    def changes(self, owner: Object) -> Iterator[tuple[Rule, tuple[Change, ...]]]:
        """What rules at level `remediate` put into an object that breaks them, before it is judged.

        Where something that a remedy reads is not known yet, it changes nothing.
        """
        for rule in self._remedies:
            excepted = any(each.covers(rule.id, owner) and each.holds(self._today) for each in self._exceptions)
            if not excepted and (not rule.kinds or owner.kind in rule.kinds):
                changes = tuple(_changes(rule, owner))
                if changes:
                    yield rule, changes

    def of_stack(self, stack: Stack) -> Iterator[Finding]:
        """What rules about all objects together find."""
        for rule, weight, options in self._rules[Stack]:
            yield from self._asked(rule, weight, options, stack, None)

    def _asked(
        self, rule: Rule, weight: Level, options: Settings, subject: object, owner: Object | None
    ) -> Iterator[Finding]:
        try:
            for violation in rule.violations(subject, options):
                yield self._found(rule, weight, violation)
        except NotKnownYetError as unknown:
            yield self._unknown(rule, weight, unknown, owner)

    def _found(self, rule: Rule, weight: Level, violation: Violation) -> Finding:
        finding = Finding(rule, weight, violation.owner, violation.path, violation.message)
        about = [each for each in self._exceptions if each.covers(rule.id, violation.owner)]
        holding = next((each for each in about if each.holds(self._today)), None)
        return replace(finding, exception=holding, expired=None if holding else next(iter(about), None))

    def _unknown(self, rule: Rule, weight: Level, unknown: NotKnownYetError, owner: Object | None) -> Finding:
        about = unknown.owner if owner is None else owner
        filled = "cannot be known: something else fills it in"
        message = filled if about.protected is None else "cannot be known before `pulumi up`, which asks the rule again"
        return Finding(rule, weight, about, unknown.path, message, known=False)


def _changes(rule: Rule, owner: Object) -> Iterator[Change]:
    assert rule.remedy is not None
    with suppress(NotKnownYetError):
        for subject in SUBJECTS[rule.subject](owner):
            with suppress(NotKnownYetError):
                yield from rule.remedy(subject)
