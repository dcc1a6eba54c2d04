"""Generates the reference page of the rules."""

import json
from collections.abc import Iterator
from pathlib import Path

from .rule import Rule
from .rules import ENFORCEABLE, FAMILIES, RULES

FILE = Path(__file__).parents[1] / "docs" / "reference" / "policies.md"
"""The committed page."""

HEAD = f"""# Policies: reference

Made from the rules by `python -m policies --list --write`; [the guide](../policies.md) is the way in.
There are {len(RULES)} rules. Those of severity low are advisory, unless their level is set. The API server can enforce
{len(ENFORCEABLE)} of them ([which](#in-the-cluster), [how](../policies.md#in-the-cluster)).
"""


def reference_text() -> str:
    """The text of the page."""
    return "\n".join([HEAD, *(line for family in FAMILIES for line in _family(family)), *_in_the_cluster()])


def _in_the_cluster() -> Iterator[str]:
    yield "## In the cluster\n\nThe rules that the API server can enforce (`admissionPolicies` of the stack file).\n"
    yield "| Family | Rules |\n| --- | --- |"
    for family in FAMILIES:
        ids = [f"[{rule.id}](#{rule.id})" for rule in ENFORCEABLE.values() if rule.family == family]
        if ids:
            yield f"| {family} | {', '.join(ids)} |"
    yield ""


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
    if rule.remedy:
        yield f"- At level `remediate` the policy pack mends it: {rule.mends}"
    for name, field in rule.options.model_fields.items():
        default = json.dumps(field.get_default())
        yield f"- Option `{field.alias or name}`: {' '.join((field.description or '').split())} Default: `{default}`."
    yield ""
