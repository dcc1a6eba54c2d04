"""What a task asks for decides which worker comes, from zero, and it goes when it is idle."""

from collections import Counter

import pytest

from tests.pods.platform import Platform
from tests.pods.steps import WAIT_SECONDS, Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.timeout(300, func_only=True)]

TASK = """
import ray, socket
ray.init(logging_level="error")

@ray.remote(num_cpus=0, max_retries=0, {options})
def where():
    return socket.gethostname()

print("ran on", ray.get(where.remote()))
"""


@pytest.mark.parametrize(("gpus", "variant"), [(1, "1gpu"), (2, "2gpu"), (3, "4gpu"), (8, "8gpu")])
def test_a_task_gets_the_smallest_worker_that_fits(platform: Platform, steps: Steps, gpus: int, variant: str) -> None:
    with steps.step(f"a task with {gpus} GPUs, on a worker of {variant}"):
        assert f"laptop-{variant}" in _ran(platform, f"num_gpus={gpus}")


def test_an_idle_worker_goes(platform: Platform, steps: Steps) -> None:
    with steps.step("the workers are gone"):
        until(lambda: not platform.workers(), "no worker is left")


def test_a_task_for_a_full_worker_gets_a_whole_node(platform: Platform, steps: Steps) -> None:
    with steps.step("a task that only a full worker may run"):
        assert "laptop-8gpu" in _ran(platform, 'resources={"full-worker": 1}')


def test_what_no_worker_can_run_is_said_and_starts_nothing(platform: Platform, steps: Steps) -> None:
    until(lambda: not platform.workers(), "no worker is left")
    with steps.step("a task that fits no worker is reported"):
        task = platform.start_in_head(TASK.format(options="num_gpus=16"))
        try:
            until(lambda: "'GPU': 16" in platform.in_head("ray", "status"), "ray status tells of the demand")
            until(lambda: "No available node types can fulfill" in _autoscaler(platform), "the autoscaler says so", 60)
            assert Counter(platform.workers().values()) == Counter()
        finally:
            task.kill()
    # The script in the head goes on without the terminal.
    platform.in_head("pkill", "-f", "num_gpus=16")


def _ran(platform: Platform, options: str) -> str:
    task = platform.start_in_head(TASK.format(options=options))
    said, _ = task.communicate(timeout=WAIT_SECONDS)
    assert task.returncode == 0, said
    return said


def _autoscaler(platform: Platform) -> str:
    head = platform.head()
    assert head is not None
    return platform.kubectl("logs", "-n", "team-a", head, "-c", "autoscaler")
