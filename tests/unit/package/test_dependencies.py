"""The packages that the wheel's parts import are declared."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from components.payloads import PACKAGES
from tests.unit.package.test_wheel import PARTS, ROOT

IN_RAYS_IMAGES = {"ray", *PACKAGES}
"""Imported by files that run in pods."""

OF_PYDANTIC = {"annotated-types", "pydantic-core"}
"""Pydantic pins them."""


def imported(file: Path) -> Iterator[str]:
    """Top-level packages that a file imports, at any place in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]


def test_what_the_parts_import_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {canonicalize_name(Requirement(each).name) for each in project["dependencies"]} | OF_PYDANTIC
    distributions = packages_distributions()
    undeclared = {
        f"{file.relative_to(ROOT)}: {package}"
        for part in PARTS
        for file in (ROOT / part).rglob("*.py")
        for package in set(imported(file)) - {*PARTS, *IN_RAYS_IMAGES} - sys.stdlib_module_names
        if not declared & {canonicalize_name(each) for each in distributions.get(package, ())}
    }
    assert undeclared == set()
