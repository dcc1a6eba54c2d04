"""Moves resources between the states of an environment's stacks. The cluster is neither read nor changed.

First every stack that gains resources is written, then every stack that loses some, the environment's own stack last.
So a resource is always in at least one state, and the `up` of the environment's own stack refuses to run until all is
done. A run skips the steps that are done already, so that it completes an interrupted one.
"""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stacks.commands.environment.state_move import ROOT_TYPE, Row, Rows, arranged, namespace_of
from stacks.commands.environment.workspace import Stacks, State
from stacks.objects.ownership import stack_of, stacks_of
from stacks.program.identity import OUTPUT as CLUSTER
from stacks.settings import StackSettings


class MoveError(Exception):
    """Resources cannot be moved; the text has the reason and what to do."""


@dataclass(frozen=True)
class Plan:
    states: Mapping[str, State]
    """The states before the move, by stack, with secrets in plain text: they stay in memory."""

    missing: tuple[str, ...]
    """Stacks to create."""

    with_gains: Mapping[str, Rows]
    final: Mapping[str, Rows]

    surplus: tuple[str, ...]
    """Stacks that the environment does not have any more."""

    lines: tuple[str, ...]
    """For people."""

    @property
    def moves(self) -> bool:
        return bool(self.surplus) or any(self.final[name] != _rows(state) for name, state in self.states.items())


def planned(stacks: Stacks, settings: StackSettings) -> Plan:
    """The move to the stacks of a stack file.

    Raises MoveError if a stack was interrupted in an update, and StacksError.
    """
    desired, existing = stacks_of(settings, stacks.environment), set(stacks.existing())
    states = {name: stacks.read(name, show_secrets=True) for name in sorted(existing)}
    for name, state in states.items():
        if state["deployment"].get("pending_operations"):
            raise MoveError(
                f"the last update of stack {name} was interrupted, so its operations are unknown: run `pulumi "
                f"refresh -s {name}` first (docs/operations.md). Nothing was moved"
            )
    shared = [queue.name for queue in settings.queues]

    def owner(row: Row, by_urn: Mapping[str, Row]) -> str:
        namespace = namespace_of(row, by_urn, shared)
        return stack_of(namespace, settings, stacks.environment) if namespace else stacks.environment

    before = {name: _rows(state) for name, state in states.items()} | {
        name: [] for name in desired if name not in existing
    }
    found = arranged(before, owner)
    needed = [name for name in desired if name in existing or found.moved[name]]
    surplus = tuple(name for name in sorted(existing) if name not in desired)
    outputs = _outputs(before.values())
    final = {name: _with_outputs(found.final[name], name, outputs, settings, stacks) for name in needed}
    return Plan(
        states,
        tuple(name for name in needed if name not in existing),
        {name: found.with_gains[name] for name in (*needed, *surplus)},
        {**final, **{name: [] for name in surplus}},
        surplus,
        (
            *(f"{number} resources move to {name}" for name, number in sorted(found.moved.items())),
            *(f"stack {name} is removed" for name in surplus),
        )
        or ("every resource is in its stack",),
    )


def move(stacks: Stacks, plan: Plan, backups: Path, show: Callable[[str], None]) -> None:
    """Executes a plan. Raises StacksError; run it again then, with a new plan. Raises MoveError if nothing was moved.

    `backups`: a folder for the earlier states, with encrypted secrets; each move creates a folder of its own there.
    """
    if not plan.moves:
        return
    folder = backups / f"{stacks.environment.replace('/', '-')}-{time.strftime('%Y%m%dT%H%M%S')}"
    try:
        folder.mkdir(parents=True, mode=0o700)
        for name in plan.states:
            _back_up(stacks, name, folder / f"{name.rpartition('/')[2]}.json")
    except OSError as error:
        reason = error.strerror or str(error)
        raise MoveError(f"the old states cannot be saved in {folder}: {reason}. Nothing was moved") from error
    show(f"the old states are in {folder}")
    states = dict(plan.states)
    for name in plan.missing:
        stacks.create(name)
        states[name] = stacks.read(name, show_secrets=True)
    own = stacks.environment
    for rows, names in ((plan.with_gains, sorted(states)), (plan.final, sorted(states, key=lambda name: name == own))):
        for name in names:
            if rows[name] != _rows(states[name]):
                states[name] = _with_rows(states[name], rows[name], states[own])
                stacks.write(name, states[name])
                show(f"{name}: written, {len(rows[name])} resources")
    for name in plan.surplus:
        stacks.remove(name)
        show(f"{name}: removed")


def _back_up(stacks: Stacks, name: str, file: Path) -> None:
    file.touch(mode=0o600)
    file.write_text(json.dumps(stacks.read(name)))


def _rows(state: State) -> Rows:
    return state["deployment"].get("resources") or []


def _with_rows(state: State, rows: Rows, like: State) -> State:
    """A state with these resources. Its secrets are encrypted as before; those of a new stack like those of another
    stack."""
    deployment = dict(state["deployment"])
    deployment.setdefault("secrets_providers", like["deployment"].get("secrets_providers"))
    return {**state, "deployment": {**deployment, "resources": list(rows)}}


_BY_NAMESPACE = ("clusters", "jobs", "services")
"""Outputs by `<namespace>/<name>`, which move with their tenants."""

Outputs = Mapping[str, Any]


def _outputs(states: Iterable[Rows]) -> Outputs:
    """The outputs that move with tenants, of all stacks together, and the environment's cluster."""
    found: dict[str, Any] = {key: {} for key in _BY_NAMESPACE}
    for outputs in (row.get("outputs") or {} for rows in states for row in rows if row["type"] == ROOT_TYPE):
        for key in _BY_NAMESPACE:
            found[key] |= outputs.get(key) or {}
        if outputs.get(CLUSTER):
            found[CLUSTER] = outputs[CLUSTER]
    return found


def _with_outputs(rows: Rows, name: str, all_of: Outputs, settings: StackSettings, stacks: Stacks) -> Rows:
    """The resources, with the outputs that the stack's next update would write."""

    def outputs(existing: Outputs) -> Outputs:
        mine = {
            key: {of: value for of, value in all_of[key].items() if _stack(of, settings, stacks) == name}
            for key in _BY_NAMESPACE
        }
        own = existing if name == stacks.environment else {}
        rest = {key: value for key, value in own.items() if key not in (*_BY_NAMESPACE, "split")}
        split = {"split": settings.split.stacks} if settings.split else {}
        moved = {key: value for key, value in mine.items() if value or (key == "clusters" and not settings.split)}
        # Each stack compares the cluster that it is for.
        cluster = {CLUSTER: all_of[CLUSTER]} if CLUSTER in all_of else {}
        return {**rest, **split, **moved, **cluster}

    return [{**row, "outputs": outputs(row.get("outputs") or {})} if row["type"] == ROOT_TYPE else row for row in rows]


def _stack(named: str, settings: StackSettings, stacks: Stacks) -> str:
    """The stack that has `<namespace>/<name>`."""
    return stack_of(named.partition("/")[0], settings, stacks.environment)
