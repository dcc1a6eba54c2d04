"""What is sent to the head of a RayCluster, run with a real Ray: who is busy, and what draining does."""

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from components.rollout import in_head
from tests.gateway.waiting import eventually

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

SECONDS = 180.0

TASK = """
import pathlib, sys, time, ray
ray.init(logging_level="error")

@ray.remote(num_cpus=1, max_retries=0)
def task(seconds, runs):
    pathlib.Path(runs).touch()
    time.sleep(float(seconds))

node, *arguments = sys.argv[1:]
ray.get(task.options(resources={node: 1} if node else {}).remote(*arguments))
"""


class Ray:
    """A Ray of the test's own."""

    def __init__(self, address: str) -> None:
        self._environment = os.environ | {"RAY_ADDRESS": address}

    def head(self, drain: dict[str, int | None]) -> dict[str, Any]:
        """What the script answers, sent as it is sent to a pod."""
        argument = json.dumps({"drain": drain})
        command = [sys.executable, "-c", Path(in_head.__file__).read_text(), argument]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def state(self, node: str) -> str:
        return str(self.head({})["nodes"][node])

    @contextmanager
    def task(self, runs: Path, seconds: float, node: str = "") -> "Iterator[subprocess.Popen[str]]":
        """A task that runs by now, on that node, or on any. `runs`: a file that it makes."""
        command = [sys.executable, "-c", textwrap.dedent(TASK), node, str(seconds), str(runs)]
        with subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as task:
            try:
                eventually("the task runs", runs.exists, seconds=SECONDS)
                yield task
            finally:
                task.kill()


@pytest.fixture(scope="module")
def ray() -> Iterator[Ray]:
    """The tests are one after the other in its life."""
    script = Path(__file__).with_name("cluster.py")
    with subprocess.Popen(
        [sys.executable, script, "one", "two", "three"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        # Ray says a few lines of its own before the address.
        address = next((line.strip() for line in process.stdout if line.startswith("127.") or line[:1].isdigit()), "")
        assert address, "no Ray has started"
        yield Ray(address)
        process.communicate(timeout=60)


def test_a_busy_node_is_not_ended_for_being_idle_and_an_idle_one_is(ray: Ray, tmp_path: Path) -> None:
    eventually("it is idle", lambda: ray.state("two") == "IDLE", seconds=SECONDS)
    with ray.task(tmp_path / "runs", 600, "one"):
        answer = ray.head({"one": None, "two": None, "absent": None})
        assert answer["accepted"] == ["two"]
        eventually("it has ended", lambda: ray.state("two") == "DEAD", seconds=SECONDS)
        assert ray.state("one") == "RUNNING"


def test_a_node_that_is_drained_ends_its_task_and_takes_no_other(ray: Ray, tmp_path: Path) -> None:
    eventually("it is idle", lambda: ray.state("one") == "IDLE", seconds=SECONDS)
    with ray.task(tmp_path / "runs", 60, "one") as task:
        soon = round((time.time() + 1) * 1000)
        assert ray.head({"one": soon})["accepted"] == ["one"]
        with ray.task(tmp_path / "another", 0.1) as another:
            output, _ = another.communicate(timeout=SECONDS)
        assert another.returncode == 0, output
        assert ray.head({"one": soon})["nodes"]["one"] == "DRAINING", (
            "at the time that it is told Ray itself ends nothing"
        )
        output, _ = task.communicate(timeout=SECONDS)
        assert task.returncode == 0, output
    eventually("it has ended", lambda: ray.state("one") == "DEAD", seconds=SECONDS)
    assert ray.state("three") in ("IDLE", "RUNNING")
