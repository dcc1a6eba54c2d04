"""Fixtures of the tests of updates."""

import pytest

from components.rollout import replacing, retirement
from tests.unit.rollout.simulated import Simulated


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    made = Simulated()
    for module in (replacing, retirement):
        monkeypatch.setattr(module, "time", made)
    return made
