"""What the tests of updates share."""

import pytest

from components.rollout import replacing, retirement
from tests.unit.rollout.simulated import Simulated


@pytest.fixture
def pods(monkeypatch: pytest.MonkeyPatch) -> Simulated:
    made = Simulated()
    for module in (replacing, retirement):
        monkeypatch.setattr(module, "time", made)
    return made
