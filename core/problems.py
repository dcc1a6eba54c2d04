"""Problems of configured values: all are found at once, each with its path."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Path in a mapping: keys as written, and indexes of lists."""


@dataclass(frozen=True)
class Problem:
    """An error in a configured value."""

    path: Path
    """Path inside the checked mapping."""
    value: Any
    """The value; None if it is missing."""
    message: str
    """What is wrong, what is allowed, what to change: one line, without the path."""
    rule: str
    """The stable name of the rule: `replica-bounds`."""

    def below(self, path: Path) -> Self:
        """This problem, relative to a mapping with the checked one at `path`."""
        return type(self)((*path, *self.path), self.value, self.message, self.rule)


class Problems(ValueError):  # noqa: N818 -- it contains several instances of Problem
    """Several problems at once; their paths are relative to the model that raises it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keeps the problems in order."""
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{dotted(problem.path)}: {problem.message}" for problem in self.problems))


def dotted(path: Path) -> str:
    """A path for messages: `workers[0].pool`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
