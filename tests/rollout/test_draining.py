"""The scripts for the head of a RayCluster, run with a real Ray: busy nodes, draining, and requests for GPUs."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from components import payloads
from stacks.commands.impact.live import busy_pods
from stacks.commands.plan.history.live import Demand, demand_of
from tests.gateway.ray_head import ATTEMPTS
from tests.gateway.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(1200)]

SECONDS = 180.0

TASK = """
import pathlib, sys, time, ray
ray.init(logging_level="error")

@ray.remote(num_cpus=1, max_retries=0)
def task(runs, ends):
    pathlib.Path(runs).touch()
    while not pathlib.Path(ends).exists():
        time.sleep(0.1)

node, *arguments = sys.argv[1:]
ray.get(task.options(resources={node: 1} if node else {}).remote(*arguments))
"""


GPUS = """
import time, ray
from ray.util.placement_group import placement_group, remove_placement_group
ray.init(logging_level="error")

@ray.remote(num_cpus=0, num_gpus=1)
def task():
    time.sleep(2)

@ray.remote(num_cpus=0, num_gpus=0.5)
class Actor:
    def works(self):
        time.sleep(1)

ray.get(task.remote())
actor = Actor.remote()
ray.get(actor.works.remote())
ray.kill(actor)
for bundles, strategy in (([1, 1, 1], "SPREAD"), ([1, 1], "STRICT_PACK")):
    group = placement_group([{"GPU": gpus} for gpus in bundles], strategy=strategy)
    ray.get(task.options(placement_group=group).remote())
    remove_placement_group(group)
"""

WAITING = """
import time, ray
ray.init(logging_level="error")

@ray.remote(num_cpus=0)
def task():
    time.sleep(600)

tasks = [task.options(num_gpus=gpus).remote() for gpus in (2, 50)]
ray.wait(tasks)
"""


class Ray:
    """A Ray for these tests."""

    def __init__(self, address: str) -> None:
        self._environment = os.environ | {"RAY_ADDRESS": address}

    def head(self, drain: dict[str, float | None]) -> dict[str, Any]:
        """The answer of the script, started as in a pod."""
        return self._answer("rollout_in_head", json.dumps({"drain": drain}))

    def demand(self) -> Demand:
        """Its demand for GPUs."""
        return demand_of(self._answer("gpu_history_in_head"))

    def _answer(self, payload: str, *arguments: str) -> dict[str, Any]:
        command = [sys.executable, "-c", payloads.text(payload), *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def state(self, node: str) -> str:
        return str(self.head({})["nodes"][node])

    def runs(self, code: str) -> None:
        """Runs code to its end."""
        with self.running(code) as program:
            output, _ = program.communicate(timeout=SECONDS)
        assert program.returncode == 0, output

    @contextmanager
    def task(self, runs: Path, ends: Path, node: str = "") -> "Iterator[subprocess.Popen[str]]":
        """A running task, on that node or on any. `runs`: a file that it creates. It ends when there is `ends`."""
        with self.running(TASK, node, str(runs), str(ends)) as task:
            eventually("the task runs", runs.exists, seconds=SECONDS)
            yield task

    @contextmanager
    def running(self, code: str, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
        """A running program, which is killed at the end of the context."""
        command = [sys.executable, "-c", code, *arguments]
        with subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as program:
            try:
                yield program
            finally:
                program.kill()


@pytest.fixture
def ray() -> Iterator[Ray]:
    """A Ray of three nodes."""
    with ExitStack() as running:
        starts = (running.enter_context(started()) for _ in range(ATTEMPTS))
        address = next(filter(None, starts), "")
        assert address, "no Ray has started"
        yield Ray(address)


@contextmanager
def started() -> Iterator[str]:
    """The address of a Ray with its nodes; empty if it has not started in the time that Ray itself allows."""
    script = Path(__file__).with_name("cluster.py")
    with subprocess.Popen(
        [sys.executable, script, "one", "two", "three"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        # Ray prints a few lines before the address.
        yield next((line.strip() for line in process.stdout if line.startswith("127.") or line[:1].isdigit()), "")
        process.communicate(timeout=60)


def requested_gpus_are_reported_with_their_times(ray: Ray) -> None:
    ray.runs(GPUS)

    def known() -> Demand | None:
        found = ray.demand()
        return found if len(found.jobs) == 6 and not found.running else None

    found = eventually("Ray has recorded all that has ended", known, seconds=SECONDS)
    assert found
    # A task, half an actor, three bundles, and two bundles for one node.
    assert Counter(job.gpus for job in found.jobs.values()) == {1: 5, 2: 1}
    assert (found.waiting, found.shared) == (0, 1)
    assert all(1 <= job.duration < 60 for job in found.jobs.values())
    assert all(time.time() - 600 < job.arrival < time.time() for job in found.jobs.values())


def used_and_awaited_gpus_are_reported(ray: Ray) -> None:
    with ray.running(WAITING):
        eventually("one runs", lambda: (ray.demand().running, ray.demand().waiting) == (1, 1), seconds=SECONDS)
        eventually("it is reported as busy", lambda: len(busy_pods(ray.head({})["nodes"])) == 1, seconds=SECONDS)


def draining_ends_an_idle_node_but_not_a_busy_one(ray: Ray, tmp_path: Path) -> None:
    eventually("it is idle", lambda: ray.state("two") == "IDLE", seconds=SECONDS)
    with ray.task(tmp_path / "runs", tmp_path / "never", "one"):
        answer = ray.head({"one": None, "two": None, "absent": None})
        assert answer["accepted"] == ["two"]
        eventually("it has ended", lambda: ray.state("two") == "DEAD", seconds=SECONDS)
        assert ray.state("one") == "RUNNING"


def a_drained_node_finishes_its_task_and_gets_no_other(ray: Ray, tmp_path: Path) -> None:
    eventually("it is idle", lambda: ray.state("one") == "IDLE", seconds=SECONDS)
    ends = tmp_path / "ends"
    with ray.task(tmp_path / "drained", ends, "one") as task:
        assert ray.head({"one": 1.0})["accepted"] == ["one"]
        with ray.task(tmp_path / "another", tmp_path) as another:
            output, _ = another.communicate(timeout=SECONDS)
        assert another.returncode == 0, output
        assert ray.head({"one": 1.0})["nodes"]["one"] == "DRAINING", "Ray itself does not end the node at the deadline"
        ends.touch()
        output, _ = task.communicate(timeout=SECONDS)
        assert task.returncode == 0, output
    eventually("it has ended", lambda: ray.state("one") == "DEAD", seconds=SECONDS)
    assert ray.state("three") in ("IDLE", "RUNNING")


def test_a_ray_reports_its_gpus_and_drains_its_nodes(ray: Ray, tmp_path: Path) -> None:
    requested_gpus_are_reported_with_their_times(ray)
    used_and_awaited_gpus_are_reported(ray)
    draining_ends_an_idle_node_but_not_a_busy_one(ray, tmp_path)
    a_drained_node_finishes_its_task_and_gets_no_other(ray, tmp_path)
