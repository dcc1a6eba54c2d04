"""What may be said about rules: how much they weigh in an environment, their options, and who is excepted."""

import difflib
from collections.abc import Iterable
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, StringConstraints, ValidationError

from components.types import Settings

from .rule import Rule, Severity
from .rules import BY_ID
from .walk import NOT_KNOWN, Object

FILE = Path(__file__).with_name("configuration.yaml")
"""What holds where no other file is named."""

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Level(StrEnum):
    """What a violation does."""

    ADVISORY = "advisory"
    """It is reported."""

    MANDATORY = "mandatory"
    """It is reported, and the preview or the command fails."""

    DISABLED = "disabled"
    """The rule is not asked."""


class Environment(Settings):
    """What rules weigh in one environment."""

    level: Level = Level.MANDATORY
    """Of all rules but those of severity low, which are advisory."""

    rules: dict[str, Level] = Field(default_factory=dict)
    """Of single rules, by their ids."""


class RuleException(Settings):
    """An object that may break a rule, for a while."""

    rule: str
    """The rule's id."""

    object: Said
    """What the object is called: KIND/NAMESPACE/NAME, or KIND/NAME where it has no namespace; `*` stands for any."""

    reason: Said
    """Why it has to be so."""

    owner: Said
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


class Configuration(Settings):
    """All of it."""

    environments: dict[str, Environment] = Field(default_factory=dict)
    """By the names of stacks; `*` in a name stands for anything, and the first that fits holds."""

    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of rules, by their ids."""

    exceptions: tuple[RuleException, ...] = ()
    """Who is excepted. Every report lists them."""

    def environment(self, name: str) -> Environment:
        """What holds in an environment; every rule is mandatory in one that nobody speaks of."""
        return next((said for pattern, said in self.environments.items() if fnmatchcase(name, pattern)), Environment())

    def options_of(self, rule: Rule) -> Settings:
        """The options of a rule. Raises pydantic's ValidationError."""
        return rule.options.model_validate(self.options.get(rule.id, {}))


class ConfigurationError(Exception):
    """A file of configuration cannot be used; the text has a line for each fault."""


def level(rule: Rule, environment: Environment) -> Level:
    """What a violation of a rule does in an environment."""
    said = environment.rules.get(rule.id)
    if said is not None:
        return said
    return (
        Level.ADVISORY if rule.severity is Severity.LOW and environment.level is Level.MANDATORY else environment.level
    )


def load(file: Path = FILE) -> Configuration:
    """The configuration in a file. Raises ConfigurationError."""
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    try:
        found = Configuration.model_validate({} if said is None else said)
    except ValidationError as error:
        raise ConfigurationError("\n".join(f"{file}: {fault}" for fault in _faults(error))) from error
    if faults := list(_unknown_rules(found)) or list(_wrong_options(found)):
        raise ConfigurationError("\n".join(f"{file}: {fault}" for fault in faults))
    return found


def unknown_rule(name: str) -> str:
    """What to say of an id that no rule has."""
    near = difflib.get_close_matches(name, BY_ID, n=1)
    hint = f"did you mean {near[0]}?" if near else "`python -m policies --list` shows all"
    return f"there is no rule {name!r}: {hint}"


def _unknown_rules(said: Configuration) -> Iterable[str]:
    for name, environment in said.environments.items():
        yield from (
            f"environments.{name}.rules: {unknown_rule(each)}" for each in environment.rules if each not in BY_ID
        )
    yield from (f"options: {unknown_rule(each)}" for each in said.options if each not in BY_ID)
    for index, each in enumerate(said.exceptions):
        if each.rule not in BY_ID:
            yield f"exceptions[{index}].rule: {unknown_rule(each.rule)}"


def _wrong_options(said: Configuration) -> Iterable[str]:
    for each in said.options:
        try:
            said.options_of(BY_ID[each])
        except ValidationError as error:
            yield from (f"options.{each}.{fault}" for fault in _faults(error))


def _faults(error: ValidationError) -> Iterable[str]:
    for fault in error.errors(include_url=False):
        place = ".".join(map(str, fault["loc"])) or "the file"
        yield f"{place}: {fault['msg']}; received {fault['input']!r}"
