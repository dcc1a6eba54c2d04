"""A case of a rule: objects, and a place in them with a value that meets the rule and one that violates it."""

import copy
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from core.body import Body
from policies.configuration import Configuration
from policies.judge import Judge, Report
from policies.values import UNKNOWN, Object

TODAY = date(2026, 11, 20)


class Missing:
    """Type of MISSING."""


MISSING = Missing()
"""Stands for a missing value."""


@dataclass(frozen=True)
class Case:
    """A case of a rule and its objects."""

    rule: str
    objects: tuple[Body, ...]
    at: str
    """Keys and indexes in one of the objects, separated by spaces."""
    good: Any
    bad: Any
    of: int = 0
    """The index of the object that contains the place."""
    unknown: str = ""
    """The place of an unknown value; empty: the same place."""
    protected: bool | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def report(self, value: Any, at: str = "") -> Report:
        """The report of all rules if the place has this value."""
        objects = [copy.deepcopy(each) for each in self.objects]
        put(objects[self.of], at or self.at, value)
        configuration = Configuration.model_validate({"options": {self.rule: self.options} if self.options else {}})
        return Judge(configuration, "prod", TODAY).report(
            Object(each, "file.yaml", protected=self.protected) for each in objects
        )

    def known_findings(self, value: Any, at: str = "") -> list[bool]:
        """For each finding of the rule, whether it is known."""
        return [each.known for each in self.report(value, at).findings if each.rule.id == self.rule]

    def not_known(self) -> list[bool]:
        """The same if a value is unknown before `pulumi up`."""
        return self.known_findings(UNKNOWN, self.unknown or self.at)


def case(rule: str, at: str, good: Any, bad: Any, *objects: Body, **further: Any) -> Case:
    """A case."""
    return Case(rule, objects, at, good, bad, **further)


def put(body: Body, at: str, value: Any) -> None:
    """Sets a value at a place, and creates the mappings on the way; MISSING removes the existing value."""
    steps: list[Any] = [int(step) if step.isdigit() else step for step in at.split()]
    last = steps.pop()
    held: Any = body
    for step in steps:
        held = held[step] if isinstance(held, list) else held.setdefault(step, {})
    if value is not MISSING:
        held[last] = value
    elif isinstance(held, dict):
        held.pop(last, None)
    else:
        del held[last]
