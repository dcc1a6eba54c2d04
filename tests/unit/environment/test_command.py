"""`ray-platform up` and its siblings: which stacks they run in, and which are not updated."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pulumi
import pytest

from components.cluster import path_of
from stacks.commands.environment import command as module
from stacks.commands.environment import driver
from stacks.commands.environment import workspace as environment_workspace
from stacks.commands.environment.driver import Outcome
from stacks.commands.environment.workspace import ROOT, Stacks, StacksError
from stacks.objects.ownership import Ownership, group_for
from stacks.program.foreign import refuse_foreign
from stacks.settings import StackSettings
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster
from testbed.recorder import record

FILE = Path(__file__).parents[2] / "stack_files" / "good" / "split.yaml"


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_nothing_changes_without_a_terminal_to_ask_on(command: str) -> None:
    result = stacks(command, "prod", "--config-file", str(FILE))
    assert result.exit_code == 2
    assert f"`{command}` asks before it changes anything, but there is no terminal: add --yes" in result.output


def test_a_missing_stack_file_and_a_missing_pulumi_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = stacks("up", "prod", "--config-file", str(tmp_path / "Pulumi.prod.yaml"), "--yes")
    assert result.exit_code == 2
    assert "Pulumi.prod.yaml: cannot be read: No such file or directory" in result.output
    monkeypatch.setenv("PATH", str(tmp_path))
    result = stacks("up", "prod", "--config-file", str(FILE), "--yes")
    assert result.exit_code == 2
    assert "`pulumi` is not on the PATH: install it" in result.output


@pytest.mark.parametrize("command", ["refresh", "destroy"])
def test_commands_without_the_program_refuse_another_cluster_than_the_recorded_one(
    command: str, in_memory: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi does not start the program for them."""
    recorded = {"kubernetes": {"cluster": "0f5c2f0e-1111-4c1e-9d0a-3a2b1c0d9e8f"}}
    workspace = SimpleNamespace(environment="prod", existing=lambda: {"prod"}, outputs=lambda _: recorded)
    monkeypatch.setattr(module, "_loaded", lambda *_: (workspace, StackSettings()))
    in_memory.objects[path_of("v1", "namespaces", None, "kube-system")] = {"metadata": {"uid": "another"}}
    result = stacks(command, "prod", "--yes")
    assert result.exit_code == 2
    assert "this stack is for another cluster" in result.stderr


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_the_output_for_programs_is_json_alone_also_if_the_command_asks(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = SimpleNamespace(environment="prod")
    monkeypatch.setattr(module, "_loaded", lambda *_: (workspace, StackSettings()))
    monkeypatch.setattr(module, "_needs_terminal", lambda _: None)
    monkeypatch.setattr(module, "_in_its_cluster", lambda *_: None)
    monkeypatch.setattr(driver, "run", lambda *_: [Outcome("prod", "done")])
    result = stacks(command, "prod", "--json", given="y\n")
    assert result.exit_code == 0, result.output
    # The runner prints what was typed, as a terminal does.
    assert json.loads(result.stdout.removeprefix(" y"))["operation"] == command
    assert "[y/N]" in result.stderr


TENANTS: dict[str, dict[str, Any]] = {
    f"urn:pulumi:prod::ray-platform::ray-platform:index:Tenant::team-{number}": {} for number in range(5)
}


def refused(
    part: Ownership,
    stack: str = "prod",
    last: dict[str, Any] | None = None,
    rows: dict[str, dict[str, Any]] | None = None,
) -> str:
    """Why a stack is refused; empty if it is not."""
    reasons: list[str] = []

    def program() -> None:
        try:
            refuse_foreign(part, stack, last or {})
        except pulumi.RunError as error:
            reasons.append(str(error))

    record(program, stack=stack, rows=rows)
    return "".join(reasons)


def test_an_environment_that_is_new_or_as_it_was_is_not_refused() -> None:
    assert refused(Ownership()) == ""
    assert refused(Ownership(), last={"clusters": {}}) == ""
    assert refused(Ownership(groups=3)) == ""
    assert refused(Ownership(groups=3), last={"split": 3.0}) == ""


def test_a_stack_with_tenants_of_other_stacks_is_refused_before_it_deletes_them() -> None:
    reason = refused(Ownership(groups=3), rows=TENANTS)
    assert reason.startswith(
        "stack prod still has team-0, team-1, team-2 and 2 more, which belong to other stacks now."
    )
    assert "Run `ray-platform move-state prod`" in reason


def test_a_group_keeps_its_own_tenants_and_no_others() -> None:
    [first, *_] = TENANTS
    own = group_for("team-0", 3)
    assert refused(Ownership(groups=3, group=own), f"prod.tenants-0{own}", rows={first: {}}) == ""
    other = own % 3 + 1
    reason = refused(Ownership(groups=3, group=other), f"prod.tenants-0{other}", rows={first: {}})
    assert f"stack prod.tenants-0{other} still has team-0, which belong" in reason
    assert "move-state prod`" in reason


@pytest.mark.parametrize(("groups", "now"), [(0, "one stack"), (5, "split into 5 stacks")])
def test_another_number_of_stacks_is_refused_before_anything_is_created_twice(groups: int, now: str) -> None:
    reason = refused(Ownership(groups=groups), last={"split": 3})
    assert f"prod was split into 3 stacks of tenants, and is {now} in the stack file" in reason


OWN = ["prod", "prod.tenants-01", "other"]
OF_A_TEAM = ["team/prod", "team/prod.tenants-02", "team/other"]


def stacks_of(environment: str, listed: list[str], monkeypatch: pytest.MonkeyPatch) -> Stacks:
    workspace = SimpleNamespace(list_stacks=lambda: [SimpleNamespace(name=name) for name in listed])
    monkeypatch.setattr(environment_workspace, "_Workspace", lambda **_: workspace)
    return Stacks(environment, ROOT / "Pulumi.prod.yaml")


@pytest.mark.parametrize(
    ("environment", "listed", "group"),
    [
        ("prod", [*OWN, *OF_A_TEAM], 1),
        ("team/prod", [*OWN, *OF_A_TEAM], 2),
        ("team/ray-platform/prod", [*OWN, *OF_A_TEAM], 2),
        ("team/prod", OWN, 1),
        ("organization/ray-platform/prod", OWN, 1),
    ],
)
def test_stacks_are_found_by_each_name_that_pulumi_takes(
    environment: str, listed: list[str], group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi lists stacks of the user's own organization by their names alone."""
    found = stacks_of(environment, listed, monkeypatch).existing()
    assert found == {environment, f"{environment}.tenants-0{group}"}


def test_a_stack_of_another_organization_is_another_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StacksError, match="there is no stack prod: run `pulumi stack init prod`"):
        stacks_of("prod", OF_A_TEAM, monkeypatch).existing()
