"""Edits of a RayCluster while tasks run."""

import textwrap
from collections.abc import Iterator

import pytest

from testbed.platform_stack import training
from testbed.pods.platform import Platform
from testbed.pods.steps import until, until_printed

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

BUSY = """
import ray, time
ray.init(logging_level="error")

@ray.remote(num_cpus=0, num_gpus=1, max_retries=0)
def busy():
    print("it runs", flush=True)
    time.sleep(600)

ray.get(busy.remote())
"""


@pytest.fixture
def busy_worker(platform: Platform) -> Iterator[str]:
    """A worker of the autoscaler that runs a task."""
    until(lambda: not platform.workers(), "no worker of other tests is left")
    task = platform.start_in_head(BUSY)
    until_printed(task, "it runs")
    (worker,) = platform.workers()
    yield worker
    task.kill()
    platform.in_head("pkill", "-f", "time.sleep")


def test_an_unrelated_edit_leaves_a_busy_worker_alone(platform: Platform, busy_worker: str) -> None:
    platform.stack.changes_nothing()
    platform.stack.edit(lambda settings: training(settings).update(labels={"cost-center": "research"}))
    platform.stack.up()
    assert busy_worker in platform.workers()
    assert "1.0/1.0 GPU" in platform.in_head("ray", "status")


BRIEF = """
import ray, time
ray.init(logging_level="error")

@ray.remote(num_cpus=0, num_gpus=1, max_retries=0)
def brief():
    print("it runs", flush=True)
    time.sleep(45)
    return "whole"

print(ray.get(brief.remote()))
"""

SHOW = """
import os, ray
ray.init(logging_level="error")

@ray.remote(num_cpus=0, num_gpus=1)
def shown():
    return os.environ.get("LEVEL")

print(ray.get(shown.remote()))
"""


def test_an_edit_of_the_environment_drains_a_busy_worker_and_reaches_all(platform: Platform) -> None:
    until(lambda: not platform.workers(), "no worker of other tests is left")
    task = platform.start_in_head(BRIEF)
    until_printed(task, "it runs")
    (busy,) = platform.workers()
    drained = {"env": {"LEVEL": "2"}, "updates": {"strategy": "drain", "limit": "4m"}}
    platform.stack.edit(lambda settings: training(settings).update(drained))
    platform.stack.up()
    output, _ = task.communicate(timeout=300)
    assert task.returncode == 0, output
    assert "whole" in output.splitlines()  # Ray may log afterwards
    assert busy not in platform.workers()
    assert platform.in_head("python", "-", given=textwrap.dedent(SHOW)).splitlines()[-1] == "2"
    platform.stack.changes_nothing()
    platform.stack.edit(lambda settings: training(settings).pop("updates"))
