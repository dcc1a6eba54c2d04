"""The request of a task decides which worker starts, from zero, and the worker ends when it is idle."""

import pytest

from testbed.pods.platform import Platform
from testbed.pods.steps import WAIT_SECONDS, Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.timeout(300, func_only=True)]

TASK = """
import ray, socket
ray.init(logging_level="error")

@ray.remote(num_cpus=0, max_retries=0, {options})
def where():
    return socket.gethostname()

print("ran on", ray.get(where.remote(), timeout={seconds}))
"""


@pytest.mark.parametrize(("gpus", "variant"), [(1, "1gpu"), pytest.param(3, "4gpu", marks=pytest.mark.thorough)])
def test_a_task_gets_the_smallest_worker_that_fits(platform: Platform, steps: Steps, gpus: int, variant: str) -> None:
    with steps.step(f"a task with {gpus} GPUs, on a worker of {variant}"):
        assert f"laptop-{variant}" in _ran(platform, f"num_gpus={gpus}")


@pytest.mark.thorough
def test_an_idle_worker_ends(platform: Platform, steps: Steps) -> None:
    with steps.step("the workers have ended"):
        until(lambda: not platform.workers(), "no worker is left")


TUNING = """
import os, pathlib, ray, socket
ray.init(logging_level="error")

def model():
    return pathlib.Path(os.environ["HF_HOME"], "model")

@ray.remote(num_cpus=0, max_retries=0, resources={"full-worker": 1})
def tune():
    return socket.gethostname(), model().read_text()

model().write_text("downloaded once")
print(*ray.get(tune.remote(), timeout=%d))
"""
"""As SFTTrainer of ado asks for its workers: each has a node of its own, and all read one copy of the model."""


@pytest.mark.thorough
def test_a_task_for_a_full_worker_gets_a_whole_node_and_reads_the_model_of_the_head(
    platform: Platform, steps: Steps
) -> None:
    with steps.step("a task that only a full worker can run"):
        task = platform.start_in_head(TUNING % WAIT_SECONDS)
        output, _ = task.communicate(timeout=WAIT_SECONDS + 20)
    assert task.returncode == 0, output
    assert "laptop-8gpu" in output
    assert "downloaded once" in output


@pytest.mark.thorough
def test_a_task_that_fits_no_worker_is_reported_and_starts_none(platform: Platform, steps: Steps) -> None:
    until(lambda: not platform.workers(), "no worker is left")
    with steps.step("a task that fits no worker is reported"):
        output = _output(platform, "num_gpus=16", code=1)
    assert "No available node types can fulfill resource requests {'GPU': 16.0}" in output
    assert "GetTimeoutError" in output
    assert platform.workers() == {}


def _ran(platform: Platform, options: str) -> str:
    return _output(platform, options, code=0)


def _output(platform: Platform, options: str, code: int) -> str:
    task = platform.start_in_head(TASK.format(options=options, seconds=12 if code else WAIT_SECONDS))
    output, _ = task.communicate(timeout=WAIT_SECONDS + 20)
    assert task.returncode == code, output
    return output
