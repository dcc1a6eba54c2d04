"""The variables with which Pulumi runs in the rehearsal."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from local.plugins import Selection
from local.pulumi import RehearsalStack

pytestmark = pytest.mark.unit


def test_variables_of_other_stacks_do_not_reach_the_rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi prefers even an empty PULUMI_CONFIG_PASSPHRASE to a file of one."""
    for name in ("PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK", "PULUMI_DIY_BACKEND_GZIP"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE_FILE", "/of/another")
    monkeypatch.setenv("PULUMI_DEBUG_COMMANDS", "true")
    rehearsal: Any = SimpleNamespace(run=tmp_path, kubeconfig=tmp_path / "admin")
    environment = RehearsalStack(rehearsal, Selection(()), "dev").environment
    passphrase, stack = environment["PULUMI_CONFIG_PASSPHRASE_FILE"], environment["PULUMI_OPTION_STACK"]
    assert (passphrase, stack) == (str(tmp_path / "pulumi" / "passphrase"), "dev")
    assert environment["PULUMI_DEBUG_COMMANDS"] == "true"
    assert not environment.keys() & {"PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK", "PULUMI_DIY_BACKEND_GZIP"}
