"""`python -m stacks recover`: what it passes to Pulumi."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from stacks.__main__ import app
from stacks.recovery import cli, repair

pytestmark = pytest.mark.unit

VARIABLE = "PULUMI_OPTION_CONFIG_FILE"


class Pulumi:
    """Pulumi's CLI, with which nothing has to be repaired."""

    passed: Any = None
    """The configuration of the last `pulumi up`."""

    def __init__(self, stack: str, environment: Mapping[str, str] = os.environ) -> None:
        self._file = environment.get(VARIABLE)

    def show(self, *_: str) -> int:
        Pulumi.passed = yaml.safe_load(Path(self._file).read_text())["config"] if self._file else None
        return 0


@pytest.mark.parametrize("stack", ["prod", "prod.tenants-02", "team/prod.tenants-02"])
@pytest.mark.parametrize("split", [True, False], ids=["split", "one stack"])
def test_a_stack_of_a_split_environment_has_its_stack_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: str, split: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(cli, "Cli", Pulumi)
    monkeypatch.setattr(repair, "repair", lambda *_, **__: [])
    found = SimpleNamespace(pending=[], existing=repair.Existing(), consistent=True, incomplete=False)
    monkeypatch.setattr(repair, "examine", lambda _: found)
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text("config:\n" + ("  ray-platform:split: {stacks: 2}\n" if split else "  ray-platform:tenants: []\n"))
    done = CliRunner().invoke(app, ["recover", stack, "--yes"])
    assert done.exit_code == 0, done.output
    assert Pulumi.passed == ({"ray-platform:file": str(file)} if split else None)
