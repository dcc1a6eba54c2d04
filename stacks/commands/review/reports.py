"""What other commands have found, for the comment: `pulumi preview --json` or `ray-platform preview --json`,
without any value (names, operations and the fields that differ), and `make rehearse ARGS="--format json"`
(local/rehearse/report.py)."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError

from core.environment import environment_of
from core.problems import few

_UNCHANGED = frozenset({"same", "read", "refresh"})

_PARTS_OF_REPLACE = frozenset({"create-replacement", "delete-replaced"})
"""Steps that belong to one of operation `replace`."""

_SHOWN = 6
"""Number of fields that a step names."""


_WRITE = "write it with `ray-platform preview STACK --json` or `pulumi preview --json`"


class NoPreviewError(Exception):
    """A file is not a preview; the text names it."""


@dataclass(frozen=True)
class Step:
    """What Pulumi would do to one resource."""

    operation: str
    """As in Pulumi: create, update, delete, replace."""
    resource: str
    """Its type and name: `kubernetes:core/v1:Namespace team-a`."""
    fields: tuple[str, ...] = ()
    """The fields that differ."""

    @property
    def shown(self) -> str:
        return few(self.fields, _SHOWN)


@dataclass(frozen=True)
class Preview:
    steps: tuple[Step, ...]
    errors: int
    """Number of errors that it has reported. Its log has the texts, in which Pulumi hides secrets that it knows."""

    @property
    def counts(self) -> Mapping[str, int]:
        return Counter(each.operation for each in self.steps)


def previews(files: Iterable[Path]) -> dict[str, Preview]:
    """The previews in files, by the name of their environments. Raises NoPreviewError."""
    found: dict[str, Preview] = {}
    for name, preview in map(_in_file, files):
        known = found.get(name, Preview((), 0))
        found[name] = Preview((*known.steps, *preview.steps), known.errors + preview.errors)
    return found


def changes(file: Path) -> list[str]:
    """A line for each change, `OPERATION URN FIELD...`, sorted. Two previews that would do the same have equal lines,
    but for the values. Raises NoPreviewError."""
    steps = [each for each in _read_preview(file)["steps"] if each.get("op") != "same"]
    return sorted(" ".join([str(each.get("op")), str(each.get("urn")), *_fields(each)]) for each in steps)


def _read_preview(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoPreviewError(f"{file}: cannot be read as JSON: {_WRITE}") from error
    steps = found.get("steps", []) if isinstance(found, Mapping) else None
    if not isinstance(steps, list) or not all(isinstance(each, Mapping) for each in steps):
        raise NoPreviewError(f"{file}: is not a preview: {_WRITE}")
    if not steps:
        raise NoPreviewError(f"{file}: has no step, so its stack is unknown: the preview ended before the first one")
    return cast("Mapping[str, Any]", found)


def _in_file(file: Path) -> tuple[str, Preview]:
    """The environment, and the preview of it or of one of its stacks."""
    found = _read_preview(file)
    stacks, steps = zip(*map(_step, found["steps"]), strict=True)
    changed = tuple(each for each in steps if each.operation not in _UNCHANGED | _PARTS_OF_REPLACE)
    errors = sum(each.get("severity") == "error" for each in found.get("diagnostics") or ())
    errors += sum(len(each["errors"]) for each in found.get("stacks") or ())
    return environment_of(stacks[0]), Preview(changed, errors)


def _step(step: Mapping[str, Any]) -> tuple[str, Step]:
    """`urn:pulumi:STACK::PROJECT::PARENT$TYPE::NAME` (pulumi, sdk/go/common/resource/urn/urn.go)."""
    urn = str(step.get("urn"))
    prefix, _, rest = urn.partition("::")
    _, _, rest = rest.partition("::")
    kinds, _, name = rest.partition("::")
    named = f"{kinds.rpartition('$')[2]} {name}"
    return prefix.removeprefix("urn:pulumi:"), Step(str(step.get("op")), named, _fields(step))


def _fields(step: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths that differ."""
    return tuple(sorted(map(str, step.get("detailedDiff") or step.get("diffReasons") or ())))


class NoRehearsalError(Exception):
    """A file is not a report of a rehearsal; the text names it."""


class _Part(BaseModel, frozen=True):
    """A part of the report. Other keys are for other readers."""


class Cluster(_Part):
    """A RayCluster of the rehearsal."""

    ready: bool


class Refusal(_Part):
    """What admission refused."""

    what: str
    message: str


class Rehearsal(_Part):
    stack: str
    well: bool
    clusters: tuple[Cluster, ...]
    not_ready: tuple[str, ...] = Field(alias="notReady")
    """RayClusters that are not ready, or do not exist."""
    refusals: tuple[Refusal, ...]
    errors: tuple[str, ...]
    """Of a failed `pulumi up`."""
    differences: tuple[str, ...]
    """From the plan, as sentences."""

    @property
    def ready(self) -> int:
        return sum(each.ready for each in self.clusters)

    @property
    def number(self) -> int:
        return self.ready + len(self.not_ready)

    @property
    def problems(self) -> tuple[str, ...]:
        """What is not as it should be, the worst first."""
        return (
            *(f"`pulumi up` failed: {each}" for each in self.errors),
            *(f"refused by admission: {each.what}: {each.message}" for each in self.refusals),
            *(f"not ready: {each}" for each in self.not_ready),
            *(f"not as planned: {each}" for each in self.differences),
        )


def rehearsals(files: Iterable[Path]) -> dict[str, Rehearsal]:
    """The rehearsals in files, by the name of their stacks. Raises NoRehearsalError."""
    found = map(_read_rehearsal, files)
    return {each.stack: each for each in found}


def _read_rehearsal(file: Path) -> Rehearsal:
    try:
        return Rehearsal.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        command = 'make rehearse STACK=NAME ARGS="--format json"'
        raise NoRehearsalError(f"{file}: is not a report of a rehearsal: write it with `{command}`") from error
