"""Previews, updates, refreshes and destroys all stacks of an environment as one, and reports the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pulumi.automation import CommandError, EngineEvent, OpType, StepEventMetadata
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from core.environment import group_of
from stacks.commands.environment.state_move import ROOT_TYPE, is_default_provider
from stacks.commands.environment.workspace import Stacks, StacksError, configuration_of
from stacks.objects.ownership import stack_of, stacks_of
from stacks.settings import StackSettings

Operation = Literal["preview", "up", "refresh", "destroy"]

Result = Literal["done", "failed", "skipped"]

CHANGES = ("create", "update", "replace", "delete")
"""Counted operations on resources, by Pulumi's names."""

UNCHANGED = "same"

_LOCKED = "the stack is currently locked"
"""In Pulumi's error (pkg/backend/diy/lock.go: checkForLock)."""

_TORN_LOCK = "error: unexpected end of JSON input"
"""The error for an empty file among the locks. For a truncated state it says more before the reason."""


Step = Mapping[str, Any]
"""What the engine does to one resource, as in the output of `pulumi preview --json`, but without states: they have
values."""


@dataclass(frozen=True)
class Outcome:
    stack: str
    result: Result
    changes: Mapping[str, int] = field(default_factory=dict)
    """Number of resources by Pulumi's names of operations."""

    seconds: float = 0.0
    errors: tuple[str, ...] = ()
    """The errors, the first one first; or the reason for skipping the stack."""

    output: str = ""
    """What Pulumi printed, of failures and previews."""

    steps: tuple[Step, ...] = ()
    """The step of each resource."""

    @property
    def changed(self) -> bool:
        return any(number for operation, number in self.changes.items() if operation != UNCHANGED)


Show = Callable[[Outcome], None]
"""Called with each stack that has ended, from several threads one at a time."""


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """0 if all stacks succeeded, else 1."""
    return 0 if all(each.result == "done" for each in outcomes) else 1


def as_object(environment: str, operation: Operation, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """For programs. A preview has the steps, as `pulumi preview --json` has them, but without values."""
    steps = {"steps": [step for each in outcomes for step in each.steps]} if operation == "preview" else {}
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
        **steps,
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
            if outcome.output and (outcome.result == "failed" or outcome.changed):
                console.print(Text(f"\n{outcome.stack}", "bold"))
                console.print(outcome.output, soft_wrap=True)
            console.print(_line(outcome), soft_wrap=True)
            bar.advance(task)

        yield show


def summary(environment: str, operation: Operation, outcomes: Sequence[Outcome], *, stderr: bool = False) -> None:
    """The table of all stacks; for failed ones the first error and the command to run again."""
    table = Table("stack", "", *CHANGES, "unchanged", "seconds", box=None, pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for each in outcomes:
        table.add_row(each.stack, each.result, *_numbers(each), f"{each.seconds:.0f}")
    if len(outcomes) > 1:
        total = [sum(each.changes.get(key, 0) for each in outcomes) for key in (*CHANGES, UNCHANGED)]
        table.add_row(f"{len(outcomes)} stacks", "", *(str(number) if number else "" for number in total), "")
    out = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    out.print(table)
    for each in outcomes:
        if each.result == "failed":
            out.print(f"\n{each.stack}: {each.errors[0]}", soft_wrap=True)
            only = f" --only {each.stack}" if len(outcomes) > 1 else ""
            out.print(f"  run again: ray-platform {operation} {environment}{only}", soft_wrap=True)
    errors = "\n".join(error for each in outcomes for error in each.errors)
    if _LOCKED in errors or _TORN_LOCK in errors:
        ended = "the other command was killed" if _LOCKED in errors else "a command was killed, or the disk was full"
        out.print(f"\nIf {ended}: ray-platform recover {environment}", soft_wrap=True)


def _line(outcome: Outcome) -> str:
    if outcome.result == "skipped":
        return f"{outcome.stack}: skipped, because {outcome.errors[0]}"
    counted = [f"{number} {key}" for key, number in outcome.changes.items() if number and key != UNCHANGED]
    what = ", ".join(counted) or ("no change" if outcome.result == "done" else "nothing done")
    return f"{outcome.stack}: {'FAILED, ' if outcome.result == 'failed' else ''}{what}, {outcome.seconds:.0f} s"


def _numbers(outcome: Outcome) -> list[str]:
    return [str(number) if (number := outcome.changes.get(key)) else "" for key in (*CHANGES, UNCHANGED)]


_COLOR = {"color": "never", "suppress_progress": True}


@dataclass(frozen=True)
class Options:
    parallel: int
    """Number of stacks at the same time."""

    diff: bool = False
    refresh: bool = False
    policy_packs: tuple[str, ...] = ()

    preview_only: bool = False
    """Of a refresh: it reports what it would change in the states."""

    expect_no_changes: bool = False
    """A stack with changes has failed."""

    only: tuple[str, ...] = ()
    """The stacks to run it on. Default: all."""


def run(stacks: Stacks, settings: StackSettings, operation: Operation, options: Options, show: Show) -> list[Outcome]:
    """Runs a command on all stacks of an environment. Returns the result of each, in the order of their names.

    The platform is updated before the tenants and destroyed after them; if the first part fails, the other is skipped.
    Previews and refreshes need no order. A failed stack of tenants stops no others.

    Raises StacksError if the stacks cannot be listed or one is unknown, and KeyboardInterrupt once all running
    processes have ended.
    """
    existing = stacks.existing()
    names = _selected(stacks, settings, operation, existing)
    if unknown := [name for name in options.only if name not in names]:
        raise StacksError(f"{stacks.environment} has no stack {unknown[0]}: use one of {', '.join(names)}")
    names = [name for name in names if not options.only or name in options.only]
    first, then = [name for name in names if group_of(name) is None], [name for name in names if group_of(name)]
    if operation == "destroy":
        first, then = then, first
    turns = [first, then] if operation in ("up", "destroy") else [[*first, *then]]
    outcomes: dict[str, Outcome] = {}
    with configuration_of(stacks.file) as file:
        for turn in turns:
            if failed := [name for name, each in outcomes.items() if each.result != "done"]:
                outcomes |= _skipped(turn, f"{failed[0]} has failed", show)
                continue
            with _threads(options.parallel) as threads:
                running = [
                    threads.submit(_one, stacks, name, name in existing, operation, options, file) for name in turn
                ]
                for ended in as_completed(running):
                    outcome = ended.result()
                    show(outcome)
                    outcomes[outcome.stack] = outcome
    return [outcomes[name] for name in names]


def _selected(stacks: Stacks, settings: StackSettings, operation: Operation, existing: Iterable[str]) -> Sequence[str]:
    """The existing stacks and, except for `destroy`, the stacks of the current tenants."""
    environment, existing_stacks = stacks.environment, set(existing)
    if operation == "destroy":
        return sorted(existing_stacks)
    tenants = {stack_of(tenant.namespace_name, settings, environment) for tenant in settings.tenants}
    return [name for name in stacks_of(settings, environment) if name in existing_stacks | tenants]


def _skipped(names: Iterable[str], reason: str, show: Show) -> Mapping[str, Outcome]:
    found = {name: Outcome(name, "skipped", errors=(reason,)) for name in names}
    for each in found.values():
        show(each)
    return found


def _one(stacks: Stacks, name: str, exists: bool, operation: Operation, options: Options, file: Path) -> Outcome:
    """`file`: the stack's configuration."""
    begun = time.monotonic()
    reported = EventLog()
    arguments: dict[str, Any] = {**_COLOR, "on_event": reported, "show_secrets": False}
    if operation == "preview":
        del arguments["show_secrets"]
    if operation != "destroy":
        arguments |= {"config_file": str(file), "diff": options.diff or None}
    if operation in ("preview", "up"):
        arguments |= {
            "refresh": options.refresh or None,
            "policy_packs": list(options.policy_packs) or None,
        }
    if operation != "preview":
        arguments["suppress_outputs"] = True
    if options.expect_no_changes:
        arguments["expect_no_changes"] = True
    try:
        if not exists:
            stacks.create(name)
        stack = stacks.stack(name, preview=operation == "preview")
        done = getattr(stack, "preview_refresh" if options.preview_only else operation)(**arguments)
    except (CommandError, StacksError) as error:
        errors = tuple(reported.errors) or (_reason(str(error)),)
        return Outcome(
            name, "failed", reported.changes, time.monotonic() - begun, errors, str(error), tuple(reported.steps)
        )
    output = done.stdout if operation == "preview" or options.preview_only else ""
    return Outcome(name, "done", reported.changes, time.monotonic() - begun, (), output, tuple(reported.steps))


def _reason(text: str) -> str:
    """The line of a failed command's output with the reason, if the engine reported no error."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line for line in lines if line.startswith("error: ")), " ".join(text.split()))


@contextmanager
def _threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """A thread pool whose threads end with the context; after an interruption no further task begins.

    A terminal sends Ctrl-C to each `pulumi` as well, which then ends its current step and writes its state.
    """
    with ThreadPoolExecutor(number) as threads:
        try:
            yield threads
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise


class EventLog:
    """Engine events that a summary needs, collected while the engine runs."""

    def __init__(self) -> None:
        self.changes: Mapping[str, int] = {}
        self.errors: list[str] = []
        self.steps: list[Step] = []

    def __call__(self, event: EngineEvent) -> None:
        if event.summary_event:
            self.changes = {
                str(getattr(key, "value", key)): n for key, n in event.summary_event.resource_changes.items()
            }
        elif event.resource_pre_event:
            found = event.resource_pre_event.metadata
            if _is_shown(found):
                self.steps.append(_step(found))
        elif (diagnostic := event.diagnostic_event) and diagnostic.severity == "error":
            self._add(diagnostic.message)
        elif (broken := event.policy_event) and broken.enforcement_level == "mandatory":
            self._add(f"{broken.policy_name}: {broken.message}")

    def _add(self, message: str) -> None:
        text = " ".join(message.split())
        # The engine's last message after a failure; the errors come before it.
        if text not in (*self.errors, "update failed", "preview failed"):
            self.errors.append(text)


def _is_shown(found: StepEventMetadata) -> bool:
    """Whether Pulumi shows a step: of unchanged resources that of the stack alone, which names it, and none of its own
    providers (pulumi, pkg/backend/display/json.go: ShowPreviewDigest, pkg/engine/update.go: isInternalStep)."""
    if found.op is OpType.SAME:
        return found.type == ROOT_TYPE
    return found.op is not OpType.REMOVE_PENDING_REPLACE and not is_default_provider(found.urn)


def _step(found: StepEventMetadata) -> Step:
    differences = {path: {"kind": each.diff_kind.value} for path, each in (found.detailed_diff or {}).items()}
    return {
        "op": found.op.value,
        "urn": found.urn,
        **({"diffReasons": found.diffs} if found.diffs else {}),
        **({"detailedDiff": differences} if differences else {}),
    }
