"""What people edit while others work."""

from collections.abc import Iterator

import pytest

from tests.engine.platform_stack import training
from tests.pods.platform import Platform
from tests.pods.steps import until

pytestmark = [pytest.mark.pods, pytest.mark.timeout(300, func_only=True)]

BUSY = """
import ray, time
ray.init(logging_level="error")

@ray.remote(num_cpus=0, num_gpus=1, max_retries=0)
def busy():
    time.sleep(600)

ray.get(busy.remote())
"""


@pytest.fixture
def busy_worker(platform: Platform) -> Iterator[str]:
    """A worker that the autoscaler brought and that runs a task."""
    until(lambda: not platform.workers(), "no worker is left of other tests")
    task = platform.start_in_head(BUSY)
    until(lambda: "1.0/1.0 GPU" in platform.in_head("ray", "status"), "the task runs")
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
    platform.stack.changes_nothing()
