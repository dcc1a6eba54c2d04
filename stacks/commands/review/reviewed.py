"""The review of each stack file that a change touches: check, impact, policies and plan, together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.problems import StackFileError
from core.stack_file import read, stack_file, stack_name
from kuberay.edits import Verdict
from stacks.commands.check.findings import Checked, findings_as_objects
from stacks.commands.check.findings import check as checked_file
from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.report import as_object as impact_as_object
from stacks.commands.impact.report import pods_ended
from stacks.commands.impact.sources import file_at
from stacks.commands.review.judged import Judged, judged
from stacks.commands.review.previewed import Preview
from stacks.commands.review.rehearsed import Rehearsal
from stacks.commands.review.touched import Change, Touched
from stacks.load import settings_of
from stacks.planning.plan import Plan, plan_of

if TYPE_CHECKING:
    from policies.configuration import Configuration
    from policies.judge import Finding
    from stacks.settings import StackSettings


class Result(StrEnum):
    """What the change means for a stack, the worst first."""

    ERRORS = "cannot be applied"
    VIOLATES = "violates a mandatory policy"
    REFUSED = "`pulumi up` ends with an error"
    DISRUPTS = "disrupts what runs"
    UNKNOWN = "cannot be compared"
    DELETED = "its file is deleted"
    CHANGES = "disrupts nothing that runs"
    PROGRAM = "unknown: only the program changes"
    NOTHING = "affects nothing that runs"

    @property
    def fails(self) -> bool:
        """Whether the change must not be merged."""
        return self in (Result.ERRORS, Result.VIOLATES)


@dataclass(frozen=True)
class Reviewed:
    """The review of one stack."""

    touched: Touched
    name: str
    checked: Checked | None = None
    """None: its file is deleted."""
    impact: Impact | None = None
    """None: one of the two files cannot be loaded."""
    policies: Judged | None = None
    """None: the file cannot be loaded."""
    plan: Plan | None = None
    """None: the file cannot be loaded."""
    new: bool = False
    """Whether the file does not exist at the base."""
    invalid_before: bool = False
    """Whether the file has errors at the base, so that nothing can be compared with it."""
    program: bool = False
    """Whether the program differs, whose part in the change no impact shows."""
    preview: Preview | None = None
    rehearsal: Rehearsal | None = None

    @property
    def result(self) -> Result:
        """The worst that the change means for the stack."""
        if self.checked is None:
            return Result.DELETED
        if self.checked.findings:
            return Result.ERRORS
        if self.policies and self.policies.blocking:
            return Result.VIOLATES
        if self.impact and any(each.verdict is Verdict.REFUSED for one in self.impact.objects for each in one.effects):
            return Result.REFUSED
        if self.impact and self.impact.verdict.hurts:
            return Result.DISRUPTS
        if self.impact is None:
            return Result.UNKNOWN
        if self.impact.objects:
            return Result.CHANGES
        return Result.PROGRAM if self.program else Result.NOTHING


@dataclass(frozen=True)
class Review:
    """The review of a change."""

    change: Change
    stacks: tuple[Reviewed, ...]

    @property
    def fails(self) -> bool:
        """Whether a stack file has errors, or violates a mandatory policy."""
        return any(each.result.fails for each in self.stacks)


def review(
    change: Change,
    configuration: Configuration,
    previews: Mapping[str, Preview],
    rehearsals: Mapping[str, Rehearsal],
    price: float | None = None,
) -> Review:
    """The review. `previews`, `rehearsals`: by stack. `price`: of a GPU in an hour, for pools that set none. Raises
    NoSuchSourceError."""
    found = (
        replace(each, preview=previews.get(each.name), rehearsal=rehearsals.get(each.name))
        for each in (_of_stack(touched, change, configuration, price) for touched in change.stacks)
    )
    return Review(change, tuple(sorted(found, key=lambda each: list(Result).index(each.result))))


def _of_stack(touched: Touched, change: Change, configuration: Configuration, price: float | None) -> Reviewed:
    name = stack_name(touched.file)
    if touched.deleted:
        return Reviewed(touched, name)
    checked = checked_file(touched.file)
    if checked.findings:
        return Reviewed(touched, name, checked)
    after = settings_of(stack_file(touched.file, read(touched.file)))
    before, invalid = _before(change.commit, touched.file)
    impact = None if invalid else impact_of(before, after, price)
    policies = judged(configuration, name, before, after)
    new = before is None and not invalid
    plan, program = plan_of(after, price), bool(change.program)
    return Reviewed(touched, name, checked, impact, policies, plan, new, invalid, program)


def _before(commit: str, file: Path) -> tuple[StackSettings | None, bool]:
    """The settings at the base, None if there are none; and whether the file has errors there."""
    try:
        found = file_at(commit, file)
        return settings_of(found) if found else None, False
    except StackFileError:
        return None, True


def as_object(review: Review) -> dict[str, Any]:
    """The review for programs. Keys stay the same; null for what is unknown."""
    return {
        "base": review.change.base,
        "commit": review.change.commit,
        "fails": review.fails,
        "program": list(review.change.program),
        "stacks": [_stack(each) for each in review.stacks],
    }


def _stack(each: Reviewed) -> dict[str, Any]:
    return {
        "stack": each.name,
        "file": str(each.touched.file),
        "result": each.result,
        "new": each.new,
        "edited": each.touched.edited,
        "deleted": each.touched.deleted,
        "bases": list(each.touched.bases),
        "invalidBefore": each.invalid_before,
        "check": findings_as_objects([each.checked]) if each.checked else None,
        "podsEnded": pods_ended(each.impact) if each.impact else None,
        "impact": impact_as_object(each.impact) if each.impact else None,
        "policies": _policies(each.policies) if each.policies else None,
        "preview": _preview(each.preview) if each.preview else None,
        "rehearsal": _rehearsal(each.rehearsal) if each.rehearsal else None,
    }


def _policies(found: Judged) -> dict[str, Any]:
    return {
        "new": [_finding(each) for each in found.new],
        "old": [_finding(each) for each in found.old],
        "mended": found.mended,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule.id,
        "level": finding.level,
        "severity": finding.rule.severity,
        "blocks": finding.blocks,
        "place": finding.place,
        "message": finding.message,
        "fix": finding.rule.fix,
    }


def _preview(preview: Preview) -> dict[str, Any]:
    return {
        "errors": preview.errors,
        "steps": [
            {"operation": each.operation, "resource": each.resource, "fields": list(each.fields)}
            for each in preview.steps
        ],
    }


def _rehearsal(rehearsal: Rehearsal) -> dict[str, Any]:
    return {
        "well": rehearsal.well,
        "ready": rehearsal.ready,
        "clusters": rehearsal.number,
        "problems": list(rehearsal.problems),
    }
