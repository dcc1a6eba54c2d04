"""The results of one command on the stacks of an environment: for programs and for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

Operation = Literal["preview", "up", "refresh", "destroy"]

Result = Literal["done", "failed", "left out"]

CHANGES = ("create", "update", "replace", "delete")
"""Counted operations on resources, by Pulumi's names."""

UNCHANGED = "same"


@dataclass(frozen=True)
class Outcome:
    """The result of one stack."""

    stack: str
    result: Result
    changes: Mapping[str, int] = field(default_factory=dict)
    """Number of resources by Pulumi's names of operations."""

    seconds: float = 0.0
    errors: tuple[str, ...] = ()
    """The errors, the first one first; or the reason for skipping the stack."""

    output: str = ""
    """What Pulumi printed."""

    @property
    def changed(self) -> bool:
        """Whether any resource was changed."""
        return any(number for operation, number in self.changes.items() if operation != UNCHANGED)


Show = Callable[[Outcome], None]
"""Called with each stack that has ended, from several threads one at a time."""


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 if all stacks succeeded, else 1."""
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


console = Console(stderr=True, highlight=False, markup=False, emoji=False)
"""Standard output is for the summary, which programs may read."""


@contextmanager
def progress(operation: Operation) -> Iterator[Show]:
    """Shows each stack that ends; yields the function to call with it. On a terminal a clock runs below."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{operation}: stacks that have ended", total=None)

        def show(outcome: Outcome) -> None:
            if outcome.result == "failed" or (operation == "preview" and outcome.changed):
                console.print(Text(f"\n{outcome.stack}", "bold"))
                console.print(outcome.output, soft_wrap=True)
            console.print(_line(outcome), soft_wrap=True)
            bar.advance(task)

        yield show


def summary(environment: str, operation: Operation, outcomes: Sequence[Outcome]) -> None:
    """The table of all stacks; for failed ones the first error and the command to run again."""
    table = Table("stack", "", *CHANGES, "unchanged", "seconds", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for each in outcomes:
        table.add_row(each.stack, each.result, *_numbers(each), f"{each.seconds:.0f}")
    if len(outcomes) > 1:
        total = [sum(each.changes.get(key, 0) for each in outcomes) for key in (*CHANGES, UNCHANGED)]
        table.add_row(f"{len(outcomes)} stacks", "", *(str(number) if number else "" for number in total), "")
    out = Console(highlight=False, markup=False, emoji=False)
    out.print(table)
    for each in outcomes:
        if each.result == "failed":
            out.print(f"\n{each.stack}: {each.errors[0]}", soft_wrap=True)
            only = f" --only {each.stack}" if len(outcomes) > 1 else ""
            out.print(f"  run again: python -m stacks {operation} {environment}{only}", soft_wrap=True)


def _line(outcome: Outcome) -> str:
    if outcome.result == "left out":
        return f"{outcome.stack}: left out, because {outcome.errors[0]}"
    counted = [f"{number} {key}" for key, number in outcome.changes.items() if number and key != UNCHANGED]
    what = ", ".join(counted) or ("no change" if outcome.result == "done" else "nothing done")
    return f"{outcome.stack}: {'FAILED, ' if outcome.result == 'failed' else ''}{what}, {outcome.seconds:.0f} s"


def _numbers(outcome: Outcome) -> list[str]:
    return [str(number) if (number := outcome.changes.get(key)) else "" for key in (*CHANGES, UNCHANGED)]
