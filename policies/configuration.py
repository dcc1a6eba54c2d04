"""Configuration of the rules: their levels in an environment, their options, and exceptions.

It is in a file of the pack for all stacks, and in the file of a stack. This module does not read stack files.
"""

from __future__ import annotations

import difflib
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import AfterValidator, Field, WithJsonSchema, create_model

from core.types import NonEmptyText, Settings
from policies.rule import NoOptions, Rule, Severity
from policies.rules import BY_ID, RULES
from policies.values import NOT_KNOWN, Object


def _known(name: str) -> str:
    if name in BY_ID:
        return name
    near = difflib.get_close_matches(name, BY_ID, n=1)
    hint = f"did you mean {near[0]}?" if near else "`ray-platform policies --list` shows all"
    raise ValueError(f"there is no rule {name!r}: {hint}")


RuleId = Annotated[str, AfterValidator(_known), WithJsonSchema({"type": "string", "enum": list(BY_ID)})]
"""Id of a rule."""


class Level(StrEnum):
    """Effect of a violation."""

    ADVISORY = "advisory"
    """It is reported."""

    MANDATORY = "mandatory"
    """It is reported, and the preview or the command fails."""

    REMEDIATE = "remediate"
    """The policy pack fixes it if the rule has a remedy. Otherwise it has the effect of `mandatory`."""

    DISABLED = "disabled"
    """The rule is not evaluated."""

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
    """An object that may violate a rule until a date."""

    rule: RuleId
    """The rule's id."""

    object: NonEmptyText
    """The object: KIND/NAMESPACE/NAME, or KIND/NAME without a namespace; `*` matches anything."""

    reason: NonEmptyText
    """Why the exception is necessary."""

    owner: NonEmptyText
    """Who is responsible for it."""

    expires: date
    """The last day on which it applies."""

    def holds(self, today: date) -> bool:
        """Whether it still applies."""
        return today <= self.expires

    @property
    def fits(self) -> bool:
        """Whether its rule applies to objects of its kind."""
        kind, kinds = self.object.partition("/")[0], BY_ID[self.rule].kinds
        return not kinds or any(fnmatchcase(each, kind) for each in kinds)

    def term(self, today: date) -> str:
        """When it expires or expired."""
        return f"until {self.expires}" if self.holds(today) else f"EXPIRED on {self.expires}"

    def covers(self, rule: str, owner: Object) -> bool:
        """Whether it applies to this rule and this object.

        If a preview does not know the namespace of the object, every namespace matches: `up` knows it and asks again.
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
    """Levels of rules, their options and exceptions, in one environment or in one stack."""

    level: Level | None = None
    """Level of all rules; with `mandatory` or `remediate`, those of severity low are advisory. Default: the level in
    `policies/configuration.yaml` for the stack, or else `mandatory`."""

    rules: dict[RuleId, Level] = Field(default_factory=dict)
    """Levels of single rules, by their ids."""

    options: RuleOptions = RuleOptions()
    """Options of rules, by their ids."""

    exceptions: tuple[RuleException, ...] = ()
    """Exceptions. Every report lists them."""

    def over(self, other: PoliciesSettings) -> PoliciesSettings:
        """These settings, with the other ones for whatever is not set here, and the exceptions of both."""
        options = {name: getattr(self.options, name) for name in self.options.model_fields_set}
        return PoliciesSettings(
            level=self.level or other.level,
            rules={**other.rules, **self.rules},
            options=other.options.model_copy(update=options),
            exceptions=(*other.exceptions, *self.exceptions),
        )

    def level_of(self, rule: Rule) -> Level:
        """Level of a rule."""
        level = self.level or Level.MANDATORY
        low = rule.severity is Severity.LOW and level.blocks
        return self.rules.get(rule.id, Level.ADVISORY if low else level)

    def refuses(self, rule: str, owner: str, today: date) -> bool:
        """Whether an object, `KIND/NAMESPACE/NAME`, may not violate a rule on that day."""
        return self.level_of(BY_ID[rule]).blocks and not any(
            each.rule == rule and each.holds(today) and fnmatchcase(owner, each.object) for each in self.exceptions
        )

    def options_of(self, rule: Rule) -> Settings:
        """The options of a rule."""
        options: Settings = getattr(self.options, _field(rule.id), NoOptions())
        return options


class Configuration(Settings):
    """Configuration of the rules for all stacks, and for each environment."""

    environments: dict[str, PoliciesSettings] = Field(default_factory=dict)
    """Settings by the names of stacks; `*` in a name matches anything, and the first match applies."""

    options: RuleOptions = RuleOptions()
    """Options of rules in all environments, by their ids."""

    exceptions: tuple[RuleException, ...] = ()
    """Exceptions in all environments."""

    def environment(self, name: str) -> PoliciesSettings:
        """The settings of an environment. Without an entry, every rule is mandatory."""
        matching = (settings for pattern, settings in self.environments.items() if fnmatchcase(name, pattern))
        return next(matching, PoliciesSettings()).over(
            PoliciesSettings(options=self.options, exceptions=self.exceptions)
        )

    def with_stack(self, name: str, settings: PoliciesSettings) -> Configuration:
        """This configuration, overridden by the settings of a stack."""
        return Configuration(environments={name: settings.over(self.environment(name))})
