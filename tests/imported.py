"""Which files of the checkout a test and its helpers import."""

import ast
from collections.abc import Collection
from functools import cache
from pathlib import Path

HELPERS = ("tests", "testbed")
"""Parts of the checkout whose own imports count, too. What the program imports runs in other processes as a rule."""

NOT_FOLLOWED = "tests/suites.py"
"""It imports the inputs of all suites."""


def imported(tests: Collection[str], root: Path) -> set[Path]:
    """The tests, their fixtures, their helpers, and what all of these import, as paths in the checkout."""
    waiting = {root / test for test in tests}
    waiting |= {
        conftest
        for test in tests
        for folder in Path(test).parents
        if (conftest := root / folder / "conftest.py").is_file()
    }
    found: set[Path] = set()
    while waiting:
        file = waiting.pop()
        found.add(file)
        path = file.relative_to(root)
        if path.parts[0] in HELPERS and str(path) != NOT_FOLLOWED:
            waiting |= imports_of(file, root) - found
    return found


@cache
def imports_of(file: Path, root: Path) -> frozenset[Path]:
    """The files of the checkout that a file of it imports."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            base = file.parents[node.level - 1] if node.level else root
            module = base.joinpath(*(node.module or "").split("."))
            found |= {module.with_suffix(".py"), module / "__init__.py"}
            found |= {module / f"{alias.name}.py" for alias in node.names}
    return frozenset(each for each in found if each.is_file())
