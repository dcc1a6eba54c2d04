"""The form of rules of admission policies that list what breaks them, in CEL: an update may keep what was wrong before,
and add nothing to it, and the message has the value. Pure functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.body import Body
from policies.cel import VARIABLE, about, before, text, variables


@dataclass(frozen=True)
class Listed:
    """A rule about the parts of an object."""

    name: str
    """Name of the variable with what is found."""

    parts: str
    """CEL: the parts, a list."""

    wrong: str
    """CEL: what a part `it` has and must not have, a list. Equal entries are the same, before and after an update: so
    each has all that its effect depends on."""

    shown: str
    """CEL: the text of an entry, `item`, in the message."""

    message: str
    """What follows these texts: why it is refused, what is allowed, and what to change."""

    allowed: str = "''"
    """CEL: what is allowed, at the end of the message."""

    unless: str = ""
    """CEL: whether the rule does not apply. It may ask for rights (`authorizer`), which no message may."""

    @property
    def validation(self) -> Body:
        applies = f"{self.unless} || " if self.unless else ""
        now, stays = f"variables.{self.name}[0]", f"variables.{self.name}[?1].orValue([]).exists(kept, item in kept)"
        new = f"found.filter(item, !{stays}).map(item, {self.shown}).join(', ')"
        listed = f"{now}.map(found, {new}).filter(line, line != '').join(', ')"
        return {
            "expression": f"{applies}{now}.all(found, found.all(item, {stays}))",
            "messageExpression": f"{listed} + {text(self.message)} + {self.allowed}",
            "message": self.message.strip(" :"),
        }


def defined(rules: Sequence[Listed]) -> list[Body]:
    """The variables of a policy with these rules.

    `sides` is the object, and in an update also the one before. The variable of a rule has for each side a list of its
    parts, each with what is wrong there.
    """
    found = {rule.name: f"({rule.parts}).map(it, {rule.wrong})" for rule in rules}
    used = dict.fromkeys(VARIABLE.findall(" ".join(found.values())))
    side = ", ".join(["'body': dyn(object)", *(f"'{name}': dyn(variables.{name})" for name in used)])
    sides = f"[{{{side}}}] + (oldObject == null ? [] : [{{{before(side)}}}])"
    of_sides = {name: about(each, "side.body", r"side.\1") for name, each in found.items()}
    own = {"sides": sides, **{name: f"variables.sides.map(side, {each})" for name, each in of_sides.items()}}
    return [*variables([sides]), *({"name": name, "expression": each} for name, each in own.items())]
