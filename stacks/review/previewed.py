"""What `pulumi preview --json` has found, without any value: names, operations and the fields that differ."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from core.environment import environment_of

_UNCHANGED = frozenset({"same", "read", "refresh"})

_PARTS_OF_REPLACE = frozenset({"create-replacement", "delete-replaced"})
"""Steps that belong to one of operation `replace`."""

_SHOWN = 6
"""Number of fields that a step names."""


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
    """The previews in files, by the name of their environments: the stack's name, or that of the environment that it is
    a part of. Raises NoPreviewError."""
    found: dict[str, Preview] = {}
    for stack, preview in (each for file in files for each in _in_file(file)):
        name = environment_of(stack)
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
        raise NoPreviewError(f"{file}: cannot be read as JSON: write it with `pulumi preview --json`") from error
    steps = found.get("steps", []) if isinstance(found, Mapping) else None
    if not isinstance(steps, list) or not all(isinstance(each, Mapping) for each in steps):
        raise NoPreviewError(f"{file}: is no preview: write it with `pulumi preview --json`")
    if not steps:
        raise NoPreviewError(f"{file}: has no step, so its stack is unknown: the preview ended before the first one")
    return cast("Mapping[str, Any]", found)


def _in_file(file: Path) -> Iterator[tuple[str, Preview]]:
    found = _read(file)
    errors = sum(each.get("severity") == "error" for each in found.get("diagnostics") or ())
    by_stack: dict[str, list[Step]] = defaultdict(list)
    for each in found["steps"]:
        stack, step = _step(each)
        found_steps = by_stack[stack]
        if step.operation not in _UNCHANGED | _PARTS_OF_REPLACE:
            found_steps.append(step)
    for stack, steps in by_stack.items():
        yield stack, Preview(tuple(steps), errors)


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
