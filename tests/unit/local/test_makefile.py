"""`make` in a folder whose Python and .venv are small scripts: its output, recovery, and the page."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local import paths, pulumi
from local.control_plane import CONTEXT
from local.page import serve
from local.pulumi import PROJECT, RehearsalStack
from stacks.commands.environment.workspace import configuration_of

PYTHON = """#!/bin/sh
case "$*" in
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/uv ;;
  "-m local "*) echo "local: $*" ;;
esac
"""
"""It makes a .venv of itself, and prints the commands of the rehearsal."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder without .venv."""
    shutil.copy(paths.ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements-dev.txt").write_text("uv==1\n")
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def make(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-s", "PYTHON=./python", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)


def test_the_output_of_the_first_command_is_that_of_the_command_alone(checkout: Path) -> None:
    """It may be evaluated by a shell: eval "$(make -s env)"."""
    made = make(checkout, "env")
    assert made.stdout == "local: -m local env --stack dev\n"
    assert "Installing the Python packages" in made.stderr


def test_down_without_a_rehearsal_installs_nothing(checkout: Path) -> None:
    assert make(checkout, "down").stdout == "Nothing to stop.\n"
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize("run", [".rehearsal", ".rehearsal-prod"])
def test_down_stops_a_rehearsal_whose_packages_were_removed(checkout: Path, run: str) -> None:
    (checkout / run).mkdir()
    assert make(checkout, "down", "CLEAN=1").stdout == "local: -m local down --clean\n"
    assert not (checkout / ".venv").exists()


def test_it_becomes_the_page_of_stacks_with_the_rehearsals_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[Any] = []
    monkeypatch.setattr(os, "execve", lambda *what: became.extend(what))
    monkeypatch.setenv("KUBECONFIG", "/somebody/else")
    monkeypatch.chdir(Path.cwd())
    serve(Path("/run/admin"), Path("Pulumi.prod.yaml"), ["--port", "0"])
    program, command, environment = became
    assert program == command[0]
    assert command[1:] == ["-m", "stacks", "page", "Pulumi.prod.yaml", "--live", "--context", CONTEXT, "--port", "0"]
    assert environment["KUBECONFIG"] == "/run/admin"


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


def test_previews_of_ray_platform_are_of_the_rehearsals_copy_of_the_stack_file(
    tmp_path: Path, commands: list[list[str]]
) -> None:
    stack = rehearsed(tmp_path, {}, {"prod": WHOLE})
    with configuration_of(stack.file) as file:
        stack.run("preview", "--config-file", str(file))
    assert commands[0][4:] == ["--config", f"ray-platform:file={tmp_path / 'pulumi' / 'Pulumi.prod.yaml'}"]
    stack.run("preview", "--config-file", str(stack.file))
    assert commands[1][1:] == ["preview", "--config-file", str(stack.file)]
