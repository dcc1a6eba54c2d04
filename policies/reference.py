"""The reference page of the rules, made from the rules themselves."""

import json
from collections.abc import Iterator
from pathlib import Path

from .rule import Rule
from .rules import FAMILIES, RULES

FILE = Path(__file__).parents[1] / "docs" / "reference" / "policies.md"
"""The page as it is committed."""

HEAD = f"""# Policies: reference

Made from the rules by `python -m policies --list --write`; [the guide](../policies.md) is the way in.
There are {len(RULES)} rules. Those of severity low are advisory, unless their level is set.
"""


def reference_text() -> str:
    """The page as it is committed."""
    return "\n".join([HEAD, *(line for family in FAMILIES for line in _family(family))])


def _family(family: str) -> Iterator[str]:
    about = (FAMILIES[family].__doc__ or "").strip()
    yield f"## {family}\n\n{about}\n"
    for rule in RULES:
        if rule.family == family:
            yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}\n\n{rule.what}\n"
    yield f"- Severity: {rule.severity}."
    yield f"- Why: {rule.why}"
    yield f"- Fix: {rule.fix}"
    yield f"- Source: {rule.source}"
    for name, field in rule.options.model_fields.items():
        default = json.dumps(field.get_default())
        yield f"- Option `{field.alias or name}`: {' '.join((field.description or '').split())} Default: `{default}`."
    yield ""
