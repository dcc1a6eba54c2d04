"""What `pulumi preview --json` or `python -m stacks preview --json` has found, without any value: names, operations
and the fields that differ."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from core.environment import environment_of

_UNCHANGED = frozenset({"same", "read", "refresh"})

_PARTS_OF_REPLACE = frozenset({"create-replacement", "delete-replaced"})
"""Steps that belong to one of operation `replace`."""

_SHOWN = 6
"""Number of fields that a step names."""


_WRITE = "write it with `python -m stacks preview STACK --json` or `pulumi preview --json`"


class NoPreviewError(Exception):
    """A file is no preview; the text names it."""


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
        """The fields, for people."""
        more = len(self.fields) - _SHOWN
        return ", ".join(self.fields[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class Preview:
    """The preview of one stack."""

    steps: tuple[Step, ...]
    errors: int
    """Number of errors that it has reported. Its log has the texts, in which Pulumi hides secrets that it knows."""

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of resources by operation."""
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
    steps = [each for each in _read(file)["steps"] if each.get("op") != "same"]
    return sorted(" ".join([str(each.get("op")), str(each.get("urn")), *_fields(each)]) for each in steps)


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NoPreviewError(f"{file}: cannot be read as JSON: {_WRITE}") from error
    steps = found.get("steps", []) if isinstance(found, Mapping) else None
    if not isinstance(steps, list) or not all(isinstance(each, Mapping) for each in steps):
        raise NoPreviewError(f"{file}: is no preview: {_WRITE}")
    if not steps:
        raise NoPreviewError(f"{file}: has no step, so its stack is unknown: the preview ended before the first one")
    return cast("Mapping[str, Any]", found)


def _in_file(file: Path) -> tuple[str, Preview]:
    """The environment, and the preview of it or of one of its stacks."""
    found = _read(file)
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
