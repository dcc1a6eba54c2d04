"""After a killed command `make up` recovers the environment, whichever of its stacks the command was in."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local import pulumi
from local.pulumi import PROJECT, RehearsalStack

PENDING = {"version": 3, "checkpoint": {"latest": {"pending_operations": [{"type": "creating"}]}}}
SPLIT = {"ray-platform:split": {"stacks": 3}}
WHOLE = {"version": 3, "checkpoint": {"latest": {}}}


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run; each succeeds."""
    ran: list[list[str]] = []

    def run(command: list[Any], *_: Any) -> int:
        ran.append([str(each) for each in command])
        return 0

    monkeypatch.setattr(pulumi, "foreground", run)
    monkeypatch.setattr(RehearsalStack, "prepare", lambda _: None)
    monkeypatch.setattr(RehearsalStack, "environment", {})
    return ran


def rehearsed(folder: Path, config: dict[str, Any], states: dict[str, Any], locked: str = "") -> RehearsalStack:
    """A stack `prod` with these states in the backend, of which one has a lock."""
    of_project = folder / "pulumi" / ".pulumi" / "stacks" / PROJECT
    of_project.mkdir(parents=True)
    for name, state in states.items():
        (of_project / f"{name}.json").write_text(json.dumps(state))
    if locked:
        locks = folder / "pulumi" / ".pulumi" / "locks" / "organization" / PROJECT / locked
        locks.mkdir(parents=True)
        (locks / "1.json").write_text("{}")
    file = folder / "Pulumi.prod.yaml"
    file.write_text(json.dumps({"config": config}))
    rehearsal: Any = SimpleNamespace(run=folder, check=lambda: None)
    plugins: Any = None
    return RehearsalStack(rehearsal, plugins, "prod", file)


def recovered(ran: list[list[str]]) -> list[list[str]]:
    return [command[4:] for command in ran if "recover" in command]


@pytest.mark.parametrize("killed", ["prod.tenants-01", "prod.tenants-02"], ids=["pending", "locked"])
def test_a_stack_of_tenants_is_recovered_with_its_environment(
    tmp_path: Path, commands: list[list[str]], killed: str
) -> None:
    pending = {"prod.tenants-01": PENDING} if killed == "prod.tenants-01" else {}
    states = {"prod": WHOLE, "prod.tenants-01": WHOLE, "prod.tenants-02": WHOLE, **pending}
    locked = killed if killed == "prod.tenants-02" else ""
    rehearsed(tmp_path, SPLIT, states, locked).up("--skip-preview", "--policy-pack", "policies")
    assert recovered(commands) == [["prod", "--yes", "--", "--policy-pack", "policies"]]
    assert len(commands) == 1


def test_stacks_of_other_environments_do_not_count(tmp_path: Path, commands: list[list[str]]) -> None:
    rehearsed(tmp_path, SPLIT, {"prod": WHOLE, "dev.tenants-01": PENDING, "prod2": PENDING}).up("--skip-preview")
    assert recovered(commands) == []
    assert commands[0][1:] == ["-m", "stacks", "up", "prod", "--yes"]


def test_a_stack_alone_is_recovered_with_its_update(tmp_path: Path, commands: list[list[str]]) -> None:
    rehearsed(tmp_path, {}, {"prod": PENDING}).up("--skip-preview")
    assert recovered(commands) == [["prod", "--yes", "--", "--skip-preview"]]
    assert len(commands) == 1


def test_without_a_killed_command_nothing_is_recovered(tmp_path: Path, commands: list[list[str]]) -> None:
    rehearsed(tmp_path, {}, {"prod": WHOLE}).up("--skip-preview")
    assert recovered(commands) == []
    assert commands[0][1:] == ["up", "--yes", "--skip-preview"]
