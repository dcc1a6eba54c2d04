"""The form of rules of admission policies that list what breaks them, in CEL: an update may keep what was wrong before,
and add nothing to it, and the message has the value. Pure functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core.body import Body
from policies.cel import before, text, variables


@dataclass(frozen=True)
class Listed:
    """A rule about the parts of an object."""

    name: str
    """Name of the variable with the parts."""

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
        now, earlier = f"variables.{self.name}", f"variables.{self.name}Before"
        stays = f"{earlier}.exists(it, item in {before(self.wrong)})"
        new = f"({self.wrong}).filter(item, !{stays}).map(item, {self.shown}).join(', ')"
        listed = f"{now}.map(it, {new}).filter(line, line != '').join(', ')"
        return {
            "expression": f"{applies}{now}.all(it, ({self.wrong}).all(item, {stays}))",
            "messageExpression": f"{listed} + {text(self.message)} + {self.allowed}",
            "message": self.message.strip(" :"),
        }


def defined(rules: Sequence[Listed], further: Sequence[Body] = ()) -> list[Body]:
    """The variables of a policy with these rules. `further`: its other validations, with variables of policies/cel.py
    alone."""
    own = []
    for rule in rules:
        earlier = f"oldObject == null ? [] : {before(rule.parts)}"
        own += [{"name": rule.name, "expression": rule.parts}, {"name": f"{rule.name}Before", "expression": earlier}]
    used = [*(each["expression"] for each in (*own, *further)), *(before(rule.wrong) for rule in rules)]
    return [*variables([*used, *(rule.wrong for rule in rules)]), *own]
