"""Findings for programs: JSON, and the annotations that GitHub shows in a pull request."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from core.annotations import annotation
from core.findings import Finding, place

from .checked import Checked


def as_json(checked: Iterable[Checked]) -> str:
    """A list with an object for each finding; keys stay the same, null where nothing is known."""
    found = [_object(each.file, finding) for each in checked for finding in each.findings]
    return json.dumps(found, indent=2)


def _object(file: str, finding: Finding) -> dict[str, Any]:
    return {
        "file": file,
        "line": finding.line,
        "column": finding.column,
        "endColumn": finding.end_column,
        "path": list(finding.path),
        "place": place(finding.path),
        "value": finding.value,
        "message": finding.message,
        "rule": finding.rule,
    }


def as_annotations(checked: Iterable[Checked]) -> Iterator[str]:
    """An annotation of each finding."""
    for each in checked:
        for finding in each.findings:
            places = {
                "file": each.file,
                "line": finding.line,
                "col": finding.column,
                "endColumn": finding.end_column,
                "title": finding.rule,
            }
            yield annotation("error", places, str(finding))
