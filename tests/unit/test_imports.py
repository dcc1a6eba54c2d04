"""Imports go one way (core, kuberay, policies, components, stacks, and then what works with stacks), and files stay
short."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from components.payloads import PACKAGES

ROOT = Path(__file__).parents[2]

ORDER = ("core", "kuberay", "policies", "components", "stacks", "ray_platform", "local", "testbed", "benchmarks")
"""Each part imports itself and those before it."""

ALONE = {"__main__.py": {"stacks", "core"}}
"""Other parts, and all that they import."""

MAY_IMPORT = {part: {*ORDER[: place + 1]} for place, part in enumerate(ORDER)} | ALONE

LINES = 600

RULES = {"policies.rule", "policies.rules"}
"""The rules of policies/, and what they are."""

REVIEW = "stacks/commands/review"

WITH_PULUMI = {
    *(
        "component.py",
        "groups.py",
        "cluster.py",
        "kubernetes.py",
        "install.py",
        "authority.py",
        "changes.py",
        "state.py",
        "pulumi_internals.py",
    ),
    *(
        "build.py",
        "platform.py",
        "tenant.py",
        "config.py",
        "foreign.py",
        "facts.py",
        "workspace.py",
        "driver.py",
    ),
}
"""Files that create resources or use the engine. All other files of these parts are plain functions and data, which are
tested and reused without an engine."""


def files_of(part: str) -> list[Path]:
    path = ROOT / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def imports_of(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file, at any place in it."""
    return [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


IMPORTS = {file: imports_of(file) for part in MAY_IMPORT for file in files_of(part)}
"""Read when tests are collected: in a process in which other tests have run Python 3.11 may refuse with a SystemError
(AST constructor recursion depth mismatch, python/cpython#106905)."""


def imported(file: Path) -> Iterator[str]:
    """Top-level packages that a file imports."""
    for node in IMPORTS[file]:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif node.level == 0:
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("part", [part for part in MAY_IMPORT if files_of(part)])
def test_imports_go_one_way(part: str) -> None:
    ours = {path.name for path in ROOT.iterdir() if path.is_dir()} & {*MAY_IMPORT, "tests"}
    wrong = [
        f"{file.relative_to(ROOT)} imports {package}"
        for file in files_of(part)
        for package in imported(file)
        if package in ours - MAY_IMPORT[part]
    ]
    assert wrong == []


MODULES = {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in IMPORTS}


def modules_imported(module: str, file: Path) -> Iterator[str]:
    """The modules of this repository that a module imports, at any place in it."""
    package = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    for node in IMPORTS[file]:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            above = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{source}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else source for name in inner]
        yield from (name for name in names if name in MODULES and name != module)


def test_no_modules_import_each_other() -> None:
    """Neither when they are loaded, nor later in a function."""
    imports = {module: set(modules_imported(module, file)) for module, file in MODULES.items()}
    TopologicalSorter(imports).prepare()  # a CycleError names the modules


@pytest.mark.parametrize(
    ("part", "known"),
    [
        ("components", {"policies.cel"} | RULES),
        ("stacks", {"policies.command", "policies.configuration", "policies.read"}),
        (REVIEW, {f"policies.{module}" for module in ("cml", "configuration", "judge", "read", "values")}),
    ],
)
def test_other_parts_import_only_the_rules_and_their_settings_from_policies(part: str, known: set[str]) -> None:
    """They do not import what judges and reports; `review` alone does, whose comment has violations. Advice reads the
    levels of the pack; `policies` is a command of the others' program."""
    review = files_of(REVIEW)
    used = {
        node.module
        for file in (review if part == REVIEW else [each for each in files_of(part) if each not in review])
        for node in IMPORTS[file]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("policies")
    }
    assert used == known


def test_a_component_reaches_into_no_other_package_by_relative_imports() -> None:
    """`..` leads from a concept to the shared files of components/, never out of it."""
    wrong = [
        str(file.relative_to(ROOT))
        for file in files_of("components")
        for node in IMPORTS[file]
        if isinstance(node, ast.ImportFrom) and node.level >= len(file.relative_to(ROOT).parts)
    ]
    assert wrong == []


DYNAMIC = files_of("components/dynamic")
"""The dynamic resources."""


def test_all_providers_of_dynamic_resources_are_in_one_package() -> None:
    """States refer to them by their modules."""
    others = [file for part in ("components", "stacks", "ray_platform") for file in files_of(part)]
    assert [file for file in others if "pulumi.dynamic" in file.read_text() and file not in DYNAMIC] == []


def test_rules_and_bodies_do_not_import_pulumi() -> None:
    parts = ("core", "kuberay", "components", "stacks")
    plain = [file for part in parts for file in files_of(part) if file.name not in WITH_PULUMI and file not in DYNAMIC]
    wrong = [str(file.relative_to(ROOT)) for file in plain if {"pulumi", "pulumi_kubernetes"} & set(imported(file))]
    assert wrong == []


def test_one_file_imports_the_kubernetes_client() -> None:
    parts = ("core", "kuberay", "policies", "components", "stacks", "ray_platform")
    files = [file for part in parts for file in files_of(part)]
    importing = {str(file.relative_to(ROOT)) for file in files if "kubernetes" in imported(file)}
    assert importing == {"components/kubernetes_cluster.py"}


PAYLOADS = [file for file in files_of("components/payloads") if file != ROOT / "components/payloads/__init__.py"]


@pytest.mark.parametrize("file", PAYLOADS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_a_payload_runs_with_the_python_and_the_packages_of_rays_images(file: Path) -> None:
    """Nothing of the project is there. Within its own package it imports by `.`."""
    tree = ast.parse(file.read_text(), feature_version=(3, 9))
    # Python 3.9 has no `A | B` between types, except in annotations that are not evaluated.
    checks = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"]
    assert not [ast.unparse(each) for each in checks if isinstance(each.args[1], ast.BinOp)]
    newer = {"asyncio.timeout", "asyncio.TaskGroup", "asyncio.TimeoutError"}
    assert not newer & {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {"strict", "slots"} & {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    lazy = "from __future__ import annotations" in file.read_text()
    assert lazy or not [node for node in ast.walk(tree) if isinstance(node, ast.BitOr)]
    assert set(imported(file)) <= {*sys.stdlib_module_names, *PACKAGES}
    folder = len(file.relative_to(ROOT / "components/payloads").parts) - 1
    assert {node.level for node in IMPORTS[file] if isinstance(node, ast.ImportFrom)} <= {*range(folder + 1)}


def test_files_have_at_most_600_lines() -> None:
    """A longer one has more than one topic: split it where one ends."""
    files = [*IMPORTS, *(ROOT / "tests").rglob("*.py")]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert {file: length for file, length in lengths.items() if length > LINES} == {}
