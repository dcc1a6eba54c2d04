"""Formats of a report: for people, and for programs as JSON, SARIF 2.1.0 and annotations of a pull request.

And of the rules themselves: as JSON, and as their reference page.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.text import Text

from core.docstrings import field_docs
from core.problems import annotation, dotted
from kuberay.rules import ADVICE, ON_BODIES
from policies.configuration import Level
from policies.judge import Finding, Report
from policies.read import Unreadable
from policies.rule import Rule, Severity
from policies.rules import ENFORCEABLE, FAMILIES, RULES
from policies.rules.accepted import ACCEPTED, ADVISED, ELSEWHERE

_STYLES = {True: "bold red", False: "yellow"}


def show(report: Report) -> None:
    """Prints a report, in colours on a terminal."""
    console = Console(highlight=False, soft_wrap=True, emoji=False, markup=False)
    for line in lines(report):
        console.print(line)


def lines(report: Report) -> Iterator[Text]:
    """Violations by object, unknown values, exceptions, and the counts."""
    of_objects: dict[str, list[Finding]] = defaultdict(list)
    for each in report.findings:
        if each.known and each.exception is None:
            of_objects[f"{each.owner.source}: {each.owner}".removeprefix(": ")].append(each)
    for named, findings in of_objects.items():
        yield Text(named, "bold")
        for each in findings:
            yield from _texts_of(each)
    yield from _unknown(report.findings)
    yield from exceptions(report)
    yield _count(report)


def exceptions(report: Report) -> Iterator[Text]:
    """Every exception: its findings, its expiry, its reason and its owner."""
    if report.exceptions:
        yield Text("Exceptions", "bold")
    for each in report.exceptions:
        if not each.holds(report.today):
            found = ": it no longer applies"
        elif used := report.used(each):
            found = f", {used} found"
        else:
            found = ", excepts nothing: remove it"
        state = f"{each.term(report.today)}{found}"
        yield Text(f"  {each.rule} for {each.object}: {state}. {each.reason} ({each.owner})")


def _texts_of(finding: Finding) -> Iterator[Text]:
    line = finding.owner.line(finding.path)
    yield Text.assemble(
        "  ",
        (finding.level, _STYLES[finding.blocks]),
        f" {finding.rule.severity} ",
        (f"{dotted(finding.path)}", "cyan"),
        f" {finding.message}" if finding.path else finding.message,
        (f" [{finding.rule.id}]", "dim"),
        (f" line {line}" if line else "", "dim"),
    )
    yield Text(f"      {finding.rule.what} {finding.rule.fix}", "dim")
    if finding.expired:
        yield Text(f"      Its exception ended on {finding.expired.expires} ({finding.expired.owner}).", "yellow")


def _unknown(findings: Iterable[Finding]) -> Iterator[Text]:
    places: dict[str, list[str]] = defaultdict(list)
    for each in findings:
        if not each.known and each.rule.id not in places[each.place]:
            places[each.place].append(each.rule.id)
    if places:
        yield Text("Cannot be known before `pulumi up`", "bold")
    for place, rules in places.items():
        yield Text.assemble("  ", (place, "cyan"), f" [{', '.join(rules)}]")


def _count(report: Report) -> Text:
    found = [each for each in report.findings if each.known and each.exception is None]
    blocking = sum(each.blocks for each in found)
    advice = sum(each.level is Level.ADVISORY for each in found)
    objects = f"{report.objects} object{'' if report.objects == 1 else 's'}"
    summary = f"{objects}: {blocking} mandatory, {advice} advisory"
    return Text(summary, "bold red" if blocking else "bold green")


_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SCORES = {Severity.CRITICAL: "9.5", Severity.HIGH: "8.0", Severity.MEDIUM: "5.5", Severity.LOW: "3.0"}
"""GitHub derives its severities from these (docs.github.com, SARIF support for code scanning: security-severity)."""


def as_json(report: Report) -> str:
    """Findings and exceptions. The keys are stable; the value is null if nothing is known."""
    return json.dumps(
        {
            "objects": report.objects,
            "blocked": report.blocked,
            "findings": [_finding(each) for each in report.findings],
            "exceptions": [
                {**each.model_dump(mode="json"), "expired": not each.holds(report.today)} for each in report.exceptions
            ],
        },
        indent=2,
    )


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule.id,
        "family": finding.rule.family,
        "severity": finding.rule.severity,
        "level": finding.level,
        "blocks": finding.blocks,
        "known": finding.known,
        "excepted": finding.exception is not None,
        "object": str(finding.owner),
        "source": finding.owner.source or None,
        "line": finding.owner.line(finding.path),
        "path": list(finding.path),
        "place": dotted(finding.path),
        "message": finding.message,
        "fix": finding.rule.fix,
    }


def rules_as_json() -> str:
    """All rules."""
    return json.dumps([_rule(each) for each in RULES], indent=2)


def _rule(rule: Rule) -> dict[str, Any]:
    fields = {key: getattr(rule, key) for key in ("id", "family", "severity", "what", "why", "source", "fix", "mends")}
    options = rule.options.model_json_schema().get("properties", {})
    return {**fields, "subject": rule.subject.__name__, "options": options}


def as_annotations(report: Report, unreadable: Iterable[Unreadable] = ()) -> Iterator[str]:
    """A workflow command for each known finding and each unreadable file; exceptions are notices."""
    for unread in unreadable:
        yield annotation("error", {"file": unread.source, "line": unread.line}, unread.message)
    for each in report.findings:
        if each.known and each.exception is None:
            places = {"file": each.owner.source, "line": each.owner.line(each.path), "title": each.rule.id}
            text = f"{each.place}: {each.message}. {each.rule.fix}"
            yield annotation("error" if each.blocks else "warning", places, text)
    for exception in report.exceptions:
        term = exception.term(report.today)
        text = f"{exception.rule} excepts {exception.object}, {term}: {exception.reason} ({exception.owner})"
        yield annotation("notice", {"title": "exception"}, text)


def as_sarif(report: Report) -> str:
    """One run, with every rule and a result for each finding; findings with an exception are suppressed."""
    driver = {
        "name": "ray-platform-policies",
        "rules": [
            {
                "id": each.id,
                "shortDescription": {"text": each.what},
                "fullDescription": {"text": each.why},
                "help": {"text": f"{each.fix}\n\nSource: {each.source}"},
                "properties": {"tags": ["security", each.family], "security-severity": _SCORES[each.severity]},
            }
            for each in RULES
        ],
    }
    results = [_result(each) for each in report.findings]
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding) -> dict[str, Any]:
    line = finding.owner.line(finding.path)
    region = {"region": {"startLine": line}} if line else {}
    suppressed = finding.exception
    severity = "note" if not finding.known else "error" if finding.level.blocks else "warning"
    return {
        "ruleId": finding.rule.id,
        "level": severity,
        "message": {"text": f"{finding.place}: {finding.message}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": quote(finding.owner.source)}, **region},
                "logicalLocations": [{"fullyQualifiedName": finding.place}],
            }
        ],
        **(
            {"suppressions": [{"kind": "external", "justification": f"{suppressed.reason} ({suppressed.owner})"}]}
            if suppressed
            else {}
        ),
    }


REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "policies.md"
"""The committed page."""

_HEAD = f"""# Policies: reference

Made from the rules by `ray-platform policies --list --write`; [the guide](../policies.md) is the way in.
There are {len(RULES)} rules. Those of severity low are advisory, unless their level is set. The API server can enforce
{len(ENFORCEABLE)} of them ([which](#in-the-cluster), [how](../policies.md#in-the-cluster)).
"""


def reference_text() -> str:
    """The text of the page."""
    return "\n".join(
        [_HEAD, *(line for family in FAMILIES for line in _family_section(family)), *_in_the_cluster(), *_mouths()]
    )


def _in_the_cluster() -> Iterator[str]:
    yield "## In the cluster\n\nThe rules that the API server can enforce (`admissionPolicies` of the stack file).\n"
    yield "| Family | Rules |\n| --- | --- |"
    for family in FAMILIES:
        ids = [f"[{rule.id}](#{rule.id})" for rule in ENFORCEABLE.values() if rule.family == family]
        if ids:
            yield f"| {family} | {', '.join(ids)} |"
    yield ""


def _mouths() -> Iterator[str]:
    """Who knows each rule of `check` on one object."""
    yield "## What `check` knows of one object\n"
    yield (
        "`ray-platform check` judges the objects of a stack file by these rules, and `ray-platform policies` those\n"
        "of given YAML by the same code. The admission policies of the API server have what CEL can decide.\n"
        "`check` has further rules on settings and between objects; all other rules of this page are those of\n"
        "`policies` and the pack.\n"
    )
    yield "| Rule of `check` | Follows | `check` | `policies` | Admission |\n| --- | --- | --- | --- | --- |"
    for name, origin in ON_BODIES.items():
        policy = ELSEWHERE.get(name, ACCEPTED)
        admission = "the API server itself" if origin == "apiserver" else "yes" if policy in ENFORCEABLE else "no"
        yield f"| {name} | {origin} | yes | [{policy}](#{policy}) | {admission} |"
    for name, origin in ADVICE.items():
        policy = ELSEWHERE.get(name, ADVISED)
        yield f"| {name} | {origin} | advice | [{policy}](#{policy}) | {'yes' if policy in ENFORCEABLE else 'no'} |"
    yield ""


def _family_section(family: str) -> Iterator[str]:
    about = (FAMILIES[family].__doc__ or "").strip()
    yield f"## {family}\n\n{about}\n"
    for rule in RULES:
        if rule.family == family:
            yield from _rule_section(rule)


def _rule_section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}\n\n{rule.what}\n"
    yield f"- Severity: {rule.severity}."
    yield f"- Why: {rule.why}"
    yield f"- Fix: {rule.fix}"
    yield f"- Source: {rule.source}"
    if rule.remedy:
        yield f"- At level `remediate` the policy pack fixes it: {rule.mends}"
    docs = field_docs(rule.options)
    for name, field in rule.options.model_fields.items():
        default = json.dumps(field.get_default())
        yield f"- Option `{field.alias or name}`: {' '.join((docs[name]).split())} Default: `{default}`."
    yield ""
