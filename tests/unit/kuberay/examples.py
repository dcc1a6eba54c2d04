"""For each rule a manifest that breaks it, what is said then, and the like of it that is right: examples/*.yaml.

An example has the `rule`, the `kind`, edits that make the smallest manifest of the kind `wrong` or `right`, edits on
both sides (`with`), the `message`, the place it is `at` (unless it is the one that was edited), and the `operator`;
where not the manifest but the operator has to change, `rightOperator`. `!gone` takes a field away.
tests/differential asks the operator itself about the same manifests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kuberay import OperatorContext
from tests.unit.kuberay.manifests import GONE, Body, edited, manifest, path_of

FOLDER = Path(__file__).parent / "examples"


class _Loader(yaml.SafeLoader):
    """YAML with a word for a field that is taken away."""


_Loader.add_constructor("!gone", lambda *_: GONE)


@dataclass(frozen=True)
class Example:
    """One way to break a rule, and not to."""

    rule: str
    wrong: Body
    right: Body
    at: tuple[str | int, ...]
    message: str
    operator: OperatorContext
    right_operator: OperatorContext


def _example(said: Mapping[str, Any]) -> Example:
    smallest, both = manifest(said["kind"]), said.get("with", {})
    edits: Mapping[str, Any] = said.get("wrong", {})
    operator = _operator(said.get("operator", {}))
    return Example(
        said["rule"],
        edited(smallest, {**both, **edits}),
        edited(smallest, {**both, **said.get("right", {})}),
        path_of(said["at"] if "at" in said else next(iter(edits))),
        said["message"],
        operator,
        _operator(said["rightOperator"]) if "rightOperator" in said else operator,
    )


def _operator(said: Mapping[str, Any]) -> OperatorContext:
    return OperatorContext(
        said.get("version", OperatorContext.version), said.get("batchScheduler"), said.get("featureGates", {})
    )


def _read(file: Path) -> list[Example]:
    return [_example(said) for said in yaml.load(file.read_text(), _Loader)]  # noqa: S506 -- safe, and one tag more


EXAMPLES = [example for file in sorted(FOLDER.glob("*.yaml")) for example in _read(file)]
"""All examples, file by file."""
