"""Reports for programs: JSON, SARIF 2.1.0, and the annotations that GitHub shows in a pull request."""

import json
from collections.abc import Iterator
from typing import Any

from core.annotations import annotation
from core.problems import dotted

from ..judge import Finding, Report
from ..rule import Rule, Severity
from ..rules import RULES

_SARIF = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SCORES = {Severity.CRITICAL: "9.5", Severity.HIGH: "8.0", Severity.MEDIUM: "5.5", Severity.LOW: "3.0"}
"""What GitHub makes its own severities of (docs.github.com, SARIF support for code scanning: security-severity)."""


def as_json(report: Report) -> str:
    """Findings and exceptions; keys stay the same, null where nothing is known."""
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
    said = {key: getattr(rule, key) for key in ("id", "family", "severity", "what", "why", "source", "fix", "mends")}
    options = rule.options.model_json_schema().get("properties", {})
    return {**said, "subject": rule.subject.__name__, "options": options}


def as_annotations(report: Report) -> Iterator[str]:
    """A workflow command for each finding that is known; exceptions as notices."""
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
    """One run, with every rule and a result for each finding; those of exceptions are suppressed."""
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
                "physicalLocation": {"artifactLocation": {"uri": finding.owner.source}, **region},
                "logicalLocations": [{"fullyQualifiedName": finding.place}],
            }
        ],
        **(
            {"suppressions": [{"kind": "external", "justification": f"{suppressed.reason} ({suppressed.owner})"}]}
            if suppressed
            else {}
        ),
    }
