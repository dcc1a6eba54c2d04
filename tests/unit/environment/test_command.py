"""`python -m stacks up` and its siblings as they are called."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from components.cluster import path_of
from stacks.commands.environment import command as module
from stacks.commands.environment import driver
from stacks.commands.environment.driver import Outcome
from stacks.settings import StackSettings
from testbed.commands import stacks
from testbed.fake_cluster import FakeCluster

FILE = Path(__file__).parents[2] / "stack_files" / "good" / "split.yaml"


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_nothing_changes_without_a_terminal_to_ask_on(command: str) -> None:
    result = stacks(command, "prod", "--config-file", str(FILE))
    assert result.exit_code == 2
    assert f"`{command}` asks before it changes anything, but there is no terminal: add --yes" in result.output


def test_a_missing_stack_file_is_named(tmp_path: Path) -> None:
    result = stacks("up", "prod", "--config-file", str(tmp_path / "Pulumi.prod.yaml"), "--yes")
    assert result.exit_code == 2
    assert "Pulumi.prod.yaml: cannot be read: No such file or directory" in result.output


def test_a_missing_pulumi_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
