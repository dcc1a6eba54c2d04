"""What may be said about rules: how much they weigh in an environment, their options, and who is excepted.

In a file of the pack's for all stacks, and in a stack's own file. Knows no stack file.
"""

from __future__ import annotations

import difflib
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema, create_model

from core.types import NonEmptyText, Settings

from .rule import NoOptions, Rule, Severity
from .rules import BY_ID, RULES
from .values import NOT_KNOWN, Object


def _known(name: str) -> str:
    if name in BY_ID:
        return name
    near = difflib.get_close_matches(name, BY_ID, n=1)
    hint = f"did you mean {near[0]}?" if near else "`python -m policies --list` shows all"
    raise ValueError(f"there is no rule {name!r}: {hint}")


RuleId = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(BY_ID)})]
"""Id of a rule."""


class Level(StrEnum):
    """What a violation does."""

    ADVISORY = "advisory"
    """It is reported."""

    MANDATORY = "mandatory"
    """It is reported, and the preview or the command fails."""

    REMEDIATE = "remediate"
    """The policy pack mends it where the rule has a remedy. What it does not mend is as if it were mandatory."""

    DISABLED = "disabled"
    """The rule is not asked."""

    @property
    def blocks(self) -> bool:
        """Whether a violation fails a preview or a command."""
        return self in (Level.MANDATORY, Level.REMEDIATE)


def _field(rule: str) -> str:
    return rule.replace("-", "_")


if TYPE_CHECKING:
    RuleOptions: TypeAlias = Settings
else:
    RuleOptions = create_model(
        "RuleOptions",
        __base__=Settings,
        __doc__="Options of rules, by their ids.",
        **{
            _field(each.id): (each.options, Field(default=each.options(), alias=each.id, description=each.what))
            for each in RULES
            if each.options is not NoOptions
        },
    )


class RuleException(Settings):
    """An object that may break a rule, for a while."""

    rule: RuleId
    """The rule's id."""

    object: NonEmptyText
    """What the object is called: KIND/NAMESPACE/NAME, or KIND/NAME where it has no namespace; `*` stands for any."""

    reason: NonEmptyText
    """Why it has to be so."""

    owner: NonEmptyText
    """Who answers for it."""

    expires: date
    """The last day on which it holds."""

    def holds(self, today: date) -> bool:
        """Whether it holds still."""
        return today <= self.expires

    def term(self, today: date) -> str:
        """Until when it holds, or since when it does no more."""
        return f"until {self.expires}" if self.holds(today) else f"EXPIRED on {self.expires}"

    def covers(self, rule: str, owner: Object) -> bool:
        """Whether it is about this rule and this object.

        In a preview that does not know the object's namespace any will do: `up` asks again, and knows it.
        """
        if rule != self.rule:
            return False
        if NOT_KNOWN not in str(owner):
            return fnmatchcase(str(owner), self.object)
        kind, _, rest = self.object.partition("/")
        named = str(owner).rpartition("/")[2]
        return fnmatchcase(owner.kind, kind) and (
            named == NOT_KNOWN or fnmatchcase(named, rest.rpartition("/")[2] or "*")
        )


class PoliciesSettings(Settings):
    """What rules weigh, their options, and who is excepted: in one environment, or in one stack."""

    level: Level | None = None
    """Of all rules; where it is `mandatory` or `remediate`, those of severity low are advisory. Default: what
    `policies/configuration.yaml` says of the stack, or else `mandatory`."""

    rules: dict[RuleId, Level] = Field(default_factory=dict)
    """Levels of single rules, by their ids."""

    options: RuleOptions = RuleOptions()
    """Options of rules, by their ids."""

    exceptions: tuple[RuleException, ...] = ()
    """Who is excepted. Every report lists them."""

    def over(self, other: PoliciesSettings) -> PoliciesSettings:
        """What this says, and what the other does where this says nothing; the exceptions of both."""
        options = {name: getattr(self.options, name) for name in self.options.model_fields_set}
        return PoliciesSettings(
            level=self.level or other.level,
            rules={**other.rules, **self.rules},
            options=other.options.model_copy(update=options),
            exceptions=(*other.exceptions, *self.exceptions),
        )

    def level_of(self, rule: Rule) -> Level:
        """What a violation of a rule does."""
        level = self.level or Level.MANDATORY
        low = rule.severity is Severity.LOW and level.blocks
        return self.rules.get(rule.id, Level.ADVISORY if low else level)

    def options_of(self, rule: Rule) -> Settings:
        """The options of a rule."""
        said: Settings = getattr(self.options, _field(rule.id), NoOptions())
        return said


class Configuration(Settings):
    """What holds for all stacks, and for each environment."""

    environments: dict[str, PoliciesSettings] = Field(default_factory=dict)
    """By the names of stacks; `*` in a name stands for anything, and the first that fits holds."""

    options: RuleOptions = RuleOptions()
    """Options of rules in all environments, by their ids."""

    exceptions: tuple[RuleException, ...] = ()
    """Who is excepted in all environments."""

    def environment(self, name: str) -> PoliciesSettings:
        """What holds in an environment; every rule is mandatory in one that nobody speaks of."""
        fitting = (said for pattern, said in self.environments.items() if fnmatchcase(name, pattern))
        return next(fitting, PoliciesSettings()).over(
            PoliciesSettings(options=self.options, exceptions=self.exceptions)
        )

    def with_stack(self, name: str, said: PoliciesSettings) -> Configuration:
        """This, and what a stack says of itself, which goes before it."""
        return Configuration(environments={name: said.over(self.environment(name))})
