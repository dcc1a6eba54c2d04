"""The review of each stack file that a change touches: check, impact, policies and plan, together.

A change touches the stack files that differ from the revision where it began, those over a base that differs, and all
if the program differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from os.path import normpath
from pathlib import Path
from typing import Any

from components.cml.manifests import nodes
from core.problems import StackFileError
from core.stack_file import read, stack_file, stack_name
from kuberay.edits import Verdict
from policies.cml import cluster_on_cml
from policies.configuration import Configuration
from policies.judge import Finding, Judge
from policies.values import Object
from stacks.commands.check.findings import Checked, findings_as_objects
from stacks.commands.check.findings import check as checked_file
from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.report import as_object as impact_as_object
from stacks.commands.impact.report import pods_ended
from stacks.commands.impact.sources import file_at, git
from stacks.commands.review.reports import Preview, Rehearsal
from stacks.launcher_files.configuration import with_launcher_files
from stacks.load import settings_of
from stacks.objects.stack import render_as
from stacks.planning.plan import Plan, plan_of
from stacks.settings import StackSettings

PROGRAM = ("__main__.py", "Pulumi.yaml", "components", "core", "kuberay", "policies", "requirements.txt", "stacks")
"""Files and folders beside the stack files that decide what the program creates, and what the policies are."""

_STACK_FILES = "Pulumi.*.yaml"


@dataclass(frozen=True)
class Touched:
    file: Path
    edited: bool = False
    """Whether the file itself differs, or is new."""
    deleted: bool = False
    bases: tuple[str, ...] = ()
    """The differing files that it extends, directly or not, and its differing launcher files."""


@dataclass(frozen=True)
class Change:
    """What differs between a revision and the files of this folder, committed or not."""

    base: str
    """The name of the revision."""
    commit: str
    """The last commit that the revision and this branch share."""
    stacks: tuple[Touched, ...]
    """The touched stack files; all if the program differs."""
    program: tuple[str, ...]
    """The differing files of the program."""


def change(base: str, folder: Path) -> Change:
    """What differs from a revision in the folder of the stack files. Raises NoSuchSourceError."""
    commit = _shared(base, folder)
    root = Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
    here = folder.resolve()
    listed = git(root, "diff", "--name-only", "--no-renames", "-z", commit)
    listed += git(root, "ls-files", "--others", "--exclude-standard", "-z")
    differing = frozenset(root / each for each in listed.split("\0") if each)
    program = tuple(sorted(_names_of_program(differing, here)))
    files = {*folder.glob(_STACK_FILES), *(folder / each.name for each in differing if _is_deleted(each, here))}
    stacks = (_touched(file, here, differing) for file in sorted(files))
    return Change(base, commit, tuple(each for each in stacks if program or each.edited or each.bases), program)


def _shared(base: str, folder: Path) -> str:
    unknown = f"{base!r} is not a revision of git here: give one, such as origin/main, and fetch it first"
    tip = git(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}", missing=unknown).strip()
    apart = (
        f"git finds no commit that {base} and this branch share: fetch the whole history (`git fetch --unshallow`; in "
        "a workflow of GitHub `fetch-depth: 0`, in GitLab `GIT_DEPTH: 0`)"
    )
    return git(folder, "merge-base", tip, "HEAD", missing=apart).strip()


def _names_of_program(differing: frozenset[Path], here: Path) -> Iterator[str]:
    for each in differing:
        if each.is_relative_to(here) and (path := each.relative_to(here)).parts[0] in PROGRAM:
            yield path.as_posix()


def _is_deleted(file: Path, here: Path) -> bool:
    return file.parent == here and file.match(_STACK_FILES) and not file.exists()


def _touched(file: Path, here: Path, differing: frozenset[Path]) -> Touched:
    # A stack file may be a link to what differs.
    edited, deleted = bool({here / file.name, file.resolve()} & differing), not file.exists()
    bases = () if deleted else tuple(each for each in _bases(file) if Path(normpath(here / each)) in differing)
    return Touched(file, edited, deleted, bases)


def _bases(file: Path) -> list[str]:
    """The bases of a stack file and its launcher files, by their paths from its folder; as far as they can be read."""
    found: list[str] = []

    def reader(path: str) -> tuple[str, str]:
        found.append(path)
        base = file.parent / path
        return normpath(base), read(base)

    with suppress(StackFileError):  # `check` reports it
        with_launcher_files(stack_file(file, read(file), reader))
    return found


Key = tuple[str, str, str]
"""Rule, place and message."""


@dataclass(frozen=True)
class Judged:
    """The violations after a change, without those that an exception lets pass."""

    new: tuple[Finding, ...]
    """Those that the change adds."""
    old: tuple[Finding, ...]
    """Those that exist before it, too."""
    mended: int
    """Number of violations that the change removes."""

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """Those of mandatory rules, the new ones first."""
        return tuple(each for each in (*self.new, *self.old) if each.blocks)


def judged(configuration: Configuration, name: str, before: StackSettings | None, after: StackSettings) -> Judged:
    """The violations of a stack. `name`: its name, by which the configuration has levels. `before` None: it is new."""
    was = Counter(map(_key, _violations(configuration, name, before))) if before else Counter[Key]()
    new: list[Finding] = []
    old: list[Finding] = []
    for each in _violations(configuration, name, after):
        key = _key(each)
        (old if was[key] else new).append(each)
        was[key] -= was[key] > 0
    return Judged(tuple(new), tuple(old), was.total())


def _violations(configuration: Configuration, name: str, stack: StackSettings) -> Iterator[Finding]:
    judge = Judge(configuration.with_stack(name, stack.policies), name)
    bodies = [*(made.body for made in render_as(stack, name).values()), *_on_cml(stack, name)]
    for each in judge.report(map(Object, bodies)).findings:
        if each.known and each.exception is None:
            yield each


def _on_cml(stack: StackSettings, name: str) -> Iterator[Mapping[str, Any]]:
    if cml := stack.cml:
        yield from (cluster_on_cml(nodes(cml, cluster, name)) for cluster in cml.clusters)


def _key(finding: Finding) -> Key:
    return finding.rule.id, finding.place, finding.message


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
        "preview": each.preview
        and {"errors": each.preview.errors, "steps": [asdict(one) for one in each.preview.steps]},
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


def _rehearsal(rehearsal: Rehearsal) -> dict[str, Any]:
    return {
        "well": rehearsal.well,
        "ready": rehearsal.ready,
        "clusters": rehearsal.number,
        "problems": list(rehearsal.problems),
    }
