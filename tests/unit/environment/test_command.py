"""`python -m stacks up` and its siblings as they are called."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stacks.__main__ import app

pytestmark = pytest.mark.unit

FILE = Path(__file__).parents[2] / "stack_files" / "good" / "split.yaml"


@pytest.mark.parametrize("command", ["up", "refresh", "destroy"])
def test_nothing_changes_without_a_terminal_to_ask_on(command: str) -> None:
    result = CliRunner().invoke(app, [command, "prod", "--config-file", str(FILE)])
    assert result.exit_code == 2
    assert f"`{command}` asks before it changes anything, but there is no terminal: add --yes" in result.output


def test_a_missing_stack_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["up", "prod", "--config-file", str(tmp_path / "Pulumi.prod.yaml"), "--yes"])
    assert result.exit_code == 2
    assert "Pulumi.prod.yaml: cannot be read: No such file or directory" in result.output


def test_a_missing_pulumi_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = CliRunner().invoke(app, ["up", "prod", "--config-file", str(FILE), "--yes"])
    assert result.exit_code == 2
    assert "`pulumi` is not on the PATH: install it" in result.output
