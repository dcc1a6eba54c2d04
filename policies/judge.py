"""Evaluates the rules for objects. If a rule reads an unknown value, the finding reports that it is not known."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date

from core.problems import Path, dotted
from core.types import Settings
from policies.configuration import Configuration, Level, RuleException
from policies.rule import Rule
from policies.rules import RULES
from policies.search import is_foreign, with_inner
from policies.values import Change, NotKnownYetError, Object, Violation
from policies.walk import SUBJECTS, Stack


@dataclass(frozen=True)
class Finding:
    """A violation of a rule, or that the result is not known yet."""

    rule: Rule
    level: Level
    owner: Object
    path: Path
    message: str
    known: bool = True
    """False if the rule has read a value that is not known before `pulumi up`."""
    exception: RuleException | None = None
    """The exception that applies."""
    expired: RuleException | None = None
    """An exception that has expired."""

    @property
    def blocks(self) -> bool:
        """Whether it fails a preview or a command."""
        return self.known and self.level.blocks and self.exception is None

    @property
    def place(self) -> str:
        """The object and the field: `RayCluster/team-a/training: spec.rayVersion`."""
        return f"{self.owner}: {dotted(self.path)}" if self.path else str(self.owner)


@dataclass(frozen=True)
class Report:
    """The findings of the rules in some objects."""

    findings: tuple[Finding, ...]
    objects: int
    exceptions: tuple[RuleException, ...] = ()
    today: date = field(default_factory=date.today)

    def used(self, exception: RuleException) -> int:
        """Number of findings that an exception applies to."""
        return sum(each.exception is exception for each in self.findings)

    @property
    def blocked(self) -> bool:
        """Whether a violation fails the preview or the command."""
        return any(each.blocks for each in self.findings)


class Judge:
    """Evaluates the rules with the settings of one environment."""

    def __init__(self, configuration: Configuration, environment: str, today: date | None = None) -> None:
        """`environment`: name of the environment in the configuration."""
        settings = configuration.environment(environment)
        self._exceptions = settings.exceptions
        self._today = today or date.today()
        self._rules: dict[type, list[tuple[Rule, Level, Settings]]] = defaultdict(list)
        for rule in RULES:
            level = settings.level_of(rule)
            if level is not Level.DISABLED:
                self._rules[rule.subject].append((rule, level, settings.options_of(rule)))
        self._remedies = [rule for rule in RULES if rule.remedy and settings.level_of(rule) is Level.REMEDIATE]

    def report(self, objects: Iterable[Object]) -> Report:
        """Evaluates the rules for each object, and for all together."""
        stack = Stack.of_all(objects)
        findings = [finding for each in stack.objects for finding in self._of_one(each)]
        return Report(
            (*findings, *self.of_stack(stack)),
            objects=len(stack.objects),
            exceptions=self._exceptions,
            today=self._today,
        )

    def of_object(self, owner: Object) -> Iterator[Finding]:
        """Findings of the rules about single objects, their pods and containers, and about the objects inside it."""
        for each in with_inner(owner):
            yield from self._of_one(each)

    def _of_one(self, owner: Object) -> Iterator[Finding]:
        for kind, subjects in SUBJECTS.items():
            # A RayCluster in an object of a foreign kind is judged, with its pods, as one of kind RayCluster.
            kinds = {owner.kind, *(["RayCluster"] if kind is not Object and is_foreign(owner) else [])}
            applicable = [each for each in self._rules[kind] if not each[0].kinds or kinds & set(each[0].kinds)]
            if not applicable:
                continue
            try:
                for subject in subjects(owner):
                    for rule, level, options in applicable:
                        yield from self._evaluated(rule, level, options, subject, owner)
            except NotKnownYetError as unknown:
                # The subjects themselves are not known.
                for rule, level, _ in applicable:
                    yield self._unknown(rule, level, unknown, owner)

    @property
    def mends(self) -> bool:
        """Whether some rule is at level `remediate` and has a remedy."""
        return bool(self._remedies)

    def changes(self, owner: Object) -> Iterator[tuple[Rule, tuple[Change, ...]]]:
        """Changes of the rules at level `remediate` to an object that violates them, before it is judged.

        A remedy changes nothing if it reads a value that is not known yet.
        """
        for rule in () if is_foreign(owner) else self._remedies:
            excepted = any(each.covers(rule.id, owner) and each.holds(self._today) for each in self._exceptions)
            if not excepted and (not rule.kinds or owner.kind in rule.kinds):
                changes = tuple(_changes(rule, owner))
                if changes:
                    yield rule, changes

    def of_stack(self, stack: Stack) -> Iterator[Finding]:
        """Findings of the rules about all objects together."""
        for rule, level, options in self._rules[Stack]:
            yield from self._evaluated(rule, level, options, stack, None)

    def _evaluated(
        self, rule: Rule, level: Level, options: Settings, subject: object, owner: Object | None
    ) -> Iterator[Finding]:
        try:
            for violation in rule.violations(subject, options):
                yield self._found(rule, level, violation)
        except NotKnownYetError as unknown:
            yield self._unknown(rule, level, unknown, owner)

    def _found(self, rule: Rule, level: Level, violation: Violation) -> Finding:
        message = violation.owner.said(violation.path, violation.message)
        finding = Finding(rule, level, violation.owner, violation.path, message)
        covering = [each for each in self._exceptions if each.covers(rule.id, violation.owner)]
        exception = next((each for each in covering if each.holds(self._today)), None)
        return replace(finding, exception=exception, expired=None if exception else next(iter(covering), None))

    def _unknown(self, rule: Rule, level: Level, unknown: NotKnownYetError, owner: Object | None) -> Finding:
        reported_owner = unknown.owner if owner is None else owner
        filled = "cannot be known: something else fills it in"
        message = (
            filled if not reported_owner.in_pulumi else "cannot be known before `pulumi up`, which asks the rule again"
        )
        return Finding(rule, level, reported_owner, unknown.path, message, known=False)


def _changes(rule: Rule, owner: Object) -> Iterator[Change]:
    assert rule.remedy is not None
    with suppress(NotKnownYetError):
        for subject in SUBJECTS[rule.subject](owner):
            with suppress(NotKnownYetError):
                yield from rule.remedy(subject)
