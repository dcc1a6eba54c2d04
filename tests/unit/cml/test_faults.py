"""Schedules of faults, each repeatable by its seed: servers that fail, lost answers, killed updates and dead
applications. One `up` after them converges, and `destroy` leaves nothing.

`SUITES=full` or a changed input runs all of them; else a share (tests/suites.py).
"""

import random
from contextlib import suppress

import pytest

from components.cml.client import CmlError
from testbed.cml.server import Faults
from testbed.cml.workspace import Limits
from tests.suites import in_full

from .conftest import MakePlace

pytestmark = [pytest.mark.unit, pytest.mark.suite("Cloudera ML")]

SCHEDULES, SHARE = 50, 5


class KilledError(BaseException):
    """The update is killed at this place, whatever it would catch."""


@pytest.mark.parametrize("seed", range(SCHEDULES if in_full("Cloudera ML") else SHARE))
def test_one_up_converges_after_faults_and_destroy_leaves_nothing(place_with: MakePlace, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 (a schedule is to be repeated)
    faults = Faults(seed, rate=draw.uniform(0.05, 0.3), dead=draw.uniform(0, 0.15), latency=0.005)
    place = place_with(faults, Limits(gpus=20, starting=draw.uniform(0, 0.05), stopping=draw.uniform(0, 0.05)))
    count = 0
    for _ in range(3):
        count = draw.randrange(5)
        inputs = place.inputs(numWorkers=count)
        left = [draw.randrange(2, 6)]

        def killed(line: str, left: list[int] = left) -> None:
            left[0] -= 1
            if not left[0]:
                raise KilledError(line)

        with suppress(KilledError, CmlError):
            place.applications(inputs).make(killed, (0.005, 0.01))
        for app in list(place.workspace.apps.values()):
            if draw.random() < 0.2:
                place.workspace.fail(app)
    faults.dead = 0
    inputs = place.inputs(numWorkers=count)
    assert place.make(inputs)["joined"] == count
    names = place.names
    assert len(names) == len(set(names)) == count + 1
    with suppress(KilledError):
        place.applications(inputs).clean(lambda _: (_ for _ in ()).throw(KilledError()), (0.005,))
    place.clean(inputs)
    assert place.names == []
    assert place.workspace.files["one"] == {}
