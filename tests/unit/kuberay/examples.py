"""For each rule a manifest that violates it, the message, and a similar manifest that meets it: examples/*.yaml.

An example has the `rule`, the `kind`, edits of the smallest manifest of the kind that make it `wrong` or `right`, edits
of both (`with`), the `message`, its place `at` (default: the edited one), and the `operator`. If not the manifest but
the operator has to change, it has `rightOperator`. `!gone` removes a field. tests/differential validates the same
manifests with the operator itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.body import Body
from kuberay import OperatorContext
from tests.unit.kuberay.manifests import GONE, edited, manifest, path_of

FOLDER = Path(__file__).parent / "examples"


class _Loader(yaml.SafeLoader):
    """YAML with a tag for a removed field."""


_Loader.add_constructor("!gone", lambda *_: GONE)


@dataclass(frozen=True)
class Example:
    """A manifest that violates a rule, and one that meets it."""

    rule: str
    wrong: Body
    right: Body
    at: tuple[str | int, ...]
    message: str
    operator: OperatorContext
    right_operator: OperatorContext


def _example(example: Mapping[str, Any]) -> Example:
    smallest, both = manifest(example["kind"]), example.get("with", {})
    edits: Mapping[str, Any] = example.get("wrong", {})
    operator = _operator(example.get("operator", {}))
    return Example(
        example["rule"],
        edited(smallest, {**both, **edits}),
        edited(smallest, {**both, **example.get("right", {})}),
        path_of(example["at"] if "at" in example else next(iter(edits))),
        example["message"],
        operator,
        _operator(example["rightOperator"]) if "rightOperator" in example else operator,
    )


def _operator(settings: Mapping[str, Any]) -> OperatorContext:
    return OperatorContext(
        settings.get("version", OperatorContext.version),
        settings.get("batchScheduler"),
        settings.get("featureGates", {}),
    )


def _read(file: Path) -> list[Example]:
    return [_example(example) for example in yaml.load(file.read_text(), _Loader)]  # noqa: S506 -- a safe loader with one more tag


EXAMPLES = [example for file in sorted(FOLDER.glob("*.yaml")) for example in _read(file)]
"""All examples, file by file."""
