"""What is wrong with something that was said: found all at once, each at its place."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Where something stands in a mapping: keys as they are written, indexes of lists."""


@dataclass(frozen=True)
class Problem:
    """A fault in what was said."""

    path: Path
    """Where it is, inside the mapping that was checked."""
    value: Any
    """What stands there; None where nothing does."""
    message: str
    """What is wrong, what is allowed, what to change: one line, without the path."""
    rule: str
    """The rule's name, which stays the same: `replica-bounds`."""

    def below(self, path: Path) -> Self:
        """This problem, seen from a mapping that holds the checked one at `path`."""
        return type(self)((*path, *self.path), self.value, self.message, self.rule)


class Problems(ValueError):  # noqa: N818 -- it holds what is wrong, each a Problem
    """Several problems at once; their paths begin at the model that raises it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems in the order in which they were found."""
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{dotted(problem.path)}: {problem.message}" for problem in self.problems))


def dotted(path: Path) -> str:
    """A path as people write it: `workers[0].pool`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
