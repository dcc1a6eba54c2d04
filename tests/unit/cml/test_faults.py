"""Schedules of faults, each drawn from its seed: servers and heads that fail, lost answers, updates that are killed
between any two requests, dead applications, busy workers. One `up` after them converges, no task is lost, and `destroy`
leaves nothing. Ray is simulated.

The seeds are those of Hypothesis' cases: fresh ones, or those after `--hypothesis-seed`.
"""

import random
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import hypothesis
import pytest

from components.cml.applications import Application
from components.cml.client import Client, CmlError
from components.cml.reconcile import Applications
from testbed.cml.server import HOST, KEY, Faults
from testbed.cml.workspace import Limits
from tests.unit.cml.conftest import TOKEN, MakePlace, Place

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(120)]

SCHEDULES = hypothesis.settings().max_examples // 20

QUICK = (0.005, 0.01)

SERVED: dict[str, Any] = {"serveConfigV2": {"applications": [{"name": "chat", "import_path": "chat:app"}]}}


class KilledError(BaseException):
    """The process is killed at this place, whatever it would catch."""


class Mortal(Client):
    """A client whose process is killed at one of its creations or deletions, before or after that is sent."""

    def __init__(self, place: Place, draw: random.Random) -> None:
        super().__init__(f"https://{HOST}", KEY, str(place.server.ca_file), pause=0.01)
        self._left, self._sends = draw.randrange(1, 8), draw.random() < 0.5

    def create(self, project: str, body: Mapping[str, Any]) -> None:
        self._dies_at(lambda: super(Mortal, self).create(project, body))

    def delete(self, application: Application) -> None:
        self._dies_at(lambda: super(Mortal, self).delete(application))

    def _dies_at(self, call: Any) -> None:
        self._left -= 1
        if self._left > 0 or (self._left == 0 and self._sends):
            call()
        if self._left <= 0:
            raise KilledError


def groups(draw: random.Random) -> list[dict[str, Any]]:
    """Two groups of different sizes, in two projects."""
    return [
        {"name": "small", "replicas": draw.randrange(4), "resources": {"cpu": 4, "memory": 16, "gpus": 1}},
        {"name": "large", "replicas": draw.randrange(3), "project": "two", "resources": {"cpu": 8, "memory": 32}},
    ]


def disturb(place: Place, draw: random.Random) -> None:
    """Gives some workers that have joined a head a task that does not end; or ends all tasks, and then some pods
    die."""
    place.ray.finish()
    apps = list(place.workspace.apps.values())
    runs = any(app.body["name"].endswith(".head") and app.status == "APPLICATION_RUNNING" for app in apps)
    if draw.random() < 0.5 and runs:
        states = {node: state for each in place.ray.nodes.values() for node, state in each.items()}
        for node, state in states.items():
            if state == "IDLE" and not node.startswith("head.") and draw.random() < 0.3:
                place.ray.work(node)
    else:
        for app in apps:
            if draw.random() < 0.2:
                place.workspace.fail(app)


@pytest.mark.parametrize("number", range(SCHEDULES))
def test_one_up_converges_after_faults_and_destroy_leaves_nothing(
    place_with: MakePlace, pytestconfig: pytest.Config, number: int
) -> None:
    seed = int(pytestconfig.getoption("hypothesis_seed")) + number
    draw = random.Random(seed)  # noqa: S311 (a schedule is to be repeated)
    faults = Faults(seed, draw.uniform(0.05, 0.3), dead=draw.uniform(0, 0.15), latency=0.005, in_a_row=4)
    place = place_with(faults, Limits(gpus=20, starting=draw.uniform(0, 0.05), stopping=draw.uniform(0, 0.05)))
    settings: dict[str, Any] = {"numWorkers": None, "resources": None, "drainTimeout": "1s"}
    settings["headResources"] = {"cpu": 4, "memory": 16}
    for _ in range(3):
        settings["workerGroups"] = groups(draw)
        inputs = place.inputs(**settings, **(SERVED if draw.random() < 0.5 else {}))
        with suppress(KilledError, CmlError):
            Applications(Mortal(place, draw), inputs, TOKEN, served=True).make(place.lines.append, QUICK)
        disturb(place, draw)
    place.ray.finish()
    faults.dead = 0
    made = place.applications(inputs, served=True).make(place.lines.append, QUICK)
    desired = sum(group["replicas"] for group in settings["workerGroups"])
    assert made["joined"] == desired
    names = place.names
    assert len(names) == len(set(names)) == desired + 1
    assert place.ray.lost == []
    with suppress(KilledError):
        Applications(Mortal(place, draw), inputs, TOKEN).clean(place.lines.append, QUICK)
    place.clean(inputs)
    assert place.names == []
    assert place.workspace.files == {"one": {}, "two": {}}
