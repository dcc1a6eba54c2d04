"""Asks the rules about objects. Nothing that a rule could not know passes: it is found, as not known."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date

from components.problems import Path, dotted
from components.types import Settings

from .configuration import Configuration, Level, RuleException, level
from .rule import Rule
from .rules import RULES
from .values import NotKnownYetError, Violation
from .walk import SUBJECTS, Object, Stack


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
        return self.known and self.level is Level.MANDATORY and self.exception is None

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
        """Raises pydantic's ValidationError where options of a rule are wrong."""
        self._exceptions = configuration.exceptions
        self._today = today or date.today()
        said = configuration.environment(environment)
        self._rules: dict[type, list[tuple[Rule, Level, Settings]]] = defaultdict(list)
        for rule in RULES:
            weight = level(rule, said)
            if weight is not Level.DISABLED:
                self._rules[rule.subject].append((rule, weight, configuration.options_of(rule)))

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
        message = "cannot be known before `pulumi up`, which asks the rule again"
        return Finding(rule, weight, unknown.owner if owner is None else owner, unknown.path, message, known=False)
