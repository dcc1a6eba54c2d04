"""`ray-platform recover`: what it passes to Pulumi, and what a killed Pulumi leaves in a folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from core import foreground
from stacks.commands.environment import workspace
from stacks.commands.recover import cli, repair
from stacks.commands.recover.cli import mend
from testbed.commands import stacks

VARIABLE = "PULUMI_OPTION_CONFIG_FILE"

SPLIT = "config:\n  ray-platform:split: {stacks: 2}\n"


class Pulumi:
    """Pulumi's CLI, with which nothing has to be repaired."""

    passed: Any = None
    """The configuration of the last `pulumi up`."""

    def __init__(self, stack: str, environment: Mapping[str, str] = os.environ) -> None:
        self.stack = stack
        self._file = environment.get(VARIABLE)

    def show(self, *_: str) -> int:
        Pulumi.passed = yaml.safe_load(Path(self._file).read_text())["config"] if self._file else None
        return 0


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stack file, in the current folder. Nothing has to be repaired."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(cli, "Cli", Pulumi)
    monkeypatch.setattr(repair, "repair", lambda *_, **__: [])
    found = SimpleNamespace(pending=[], existing=repair.Existing(), consistent=True, incomplete=False)
    monkeypatch.setattr(repair, "examine", lambda _: found)
    return tmp_path / "Pulumi.prod.yaml"


def recovered(*arguments: str) -> str:
    done = stacks("recover", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("stack", ["prod.tenants-02", "team/prod.tenants-02"])
def test_a_stack_of_a_split_environment_has_its_stack_file(file: Path, stack: str) -> None:
    file.write_text(SPLIT)
    recovered(stack, "--yes")
    assert Pulumi.passed == {"ray-platform:file": str(file)}


def test_a_stack_alone_has_its_own(file: Path) -> None:
    file.write_text("config:\n  ray-platform:tenants: []\n")
    recovered("prod", "--yes")
    assert Pulumi.passed is None


@pytest.mark.parametrize("stack", ["prod", "team/prod"])
def test_a_split_environment_is_repaired_whole_and_then_updated(
    file: Path, stack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(SPLIT)
    ran: list[list[str]] = []
    of_all = SimpleNamespace(existing=lambda: {f"{stack}.tenants-01", stack})
    monkeypatch.setattr(workspace, "Stacks", lambda *_: of_all)

    def run(command: list[str]) -> int:
        ran.append(command)
        return 0

    monkeypatch.setattr(foreground, "foreground", run)
    shown = recovered(stack, "--yes", "--", "--parallel=4").splitlines()
    assert [line.partition(": ")[0] for line in shown] == [stack, f"{stack}.tenants-01"]
    assert [command[1:] for command in ran] == [["-m", "stacks", "up", stack, "--yes", "--parallel=4"]]
    recovered(stack, "--yes", "--state-only")
    assert len(ran) == 1


@pytest.mark.parametrize("query", ["", "?no_tmp_dir=true"])
def test_what_was_left_empty_is_removed_and_nothing_else(tmp_path: Path, query: str) -> None:
    stacks, locks = (tmp_path / ".pulumi" / folder / "shop" for folder in ("stacks", "locks"))
    files = {
        stacks: {"dev.json": "", "dev.json.attrs": "", "dev.json.bak.attrs": "{}"},
        locks: {"1.json.2.tmp": "", "3.json.4.tmp": "{}"},
    }
    for folder, texts in files.items():
        folder.mkdir(parents=True)
        for name, text in texts.items():
            (folder / name).write_text(text)
    assert mend(f"file://{tmp_path}{query}")
    kept = {file.name for folder in files for file in folder.iterdir()}
    assert kept == {"dev.json", "dev.json.bak.attrs", "3.json.4.tmp"}
    assert not mend(f"file://{tmp_path}{query}")


@pytest.mark.parametrize("url", ["s3://states", "https://api.pulumi.com", ""])
def test_backends_other_than_a_folder_do_not_change(url: str) -> None:
    assert not mend(url)
