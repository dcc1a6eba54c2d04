"""What became of the stacks of an environment in one command. Pure data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Operation = Literal["preview", "up", "refresh", "destroy"]

Result = Literal["done", "failed", "left out"]

CHANGES = ("create", "update", "replace", "delete")
"""Operations on resources that are counted, as Pulumi names them."""

UNCHANGED = "same"


@dataclass(frozen=True)
class Outcome:
    """What became of one stack."""

    stack: str
    result: Result
    changes: Mapping[str, int] = field(default_factory=dict)
    """Numbers of resources by Pulumi's names of operations."""

    seconds: float = 0.0
    errors: tuple[str, ...] = ()
    """What went wrong, the first error first; why a stack was left out."""

    output: str = ""
    """What Pulumi printed."""

    @property
    def changed(self) -> bool:
        """Whether there is a resource that is not as it was."""
        return any(number for operation, number in self.changes.items() if operation != UNCHANGED)


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 where all stacks are done, else 1."""
    return 0 if all(each.result == "done" for each in outcomes) else 1


def as_object(environment: str, operation: Operation, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """For programs."""
    return {
        "environment": environment,
        "operation": operation,
        "stacks": [
            {
                "stack": each.stack,
                "result": each.result,
                "changes": dict(each.changes),
                "seconds": round(each.seconds, 1),
                "errors": list(each.errors),
            }
            for each in outcomes
        ],
    }
