"""A worker that has to go finishes its task; killed pods are replaced, and their tasks run again."""

import json

import pytest

from testbed.pods.node import is_ready
from testbed.pods.platform import CLUSTER, NAMESPACE, Platform
from testbed.pods.steps import WAIT_SECONDS, Steps, until, until_printed

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

OPERATOR = "app.kubernetes.io/component=kuberay-operator"

TASK = """
import ray, sys, time
ray.init(logging_level="error")

@ray.remote(num_cpus=0, num_gpus=1)
def work(seconds):
    print("it runs", flush=True)
    time.sleep(seconds)
    return "done"

seconds, retries = map(int, sys.argv[1:])
print(ray.get(work.options(max_retries=retries).remote(seconds)))
"""


def test_a_worker_that_is_evicted_finishes_its_task_first(platform: Platform, steps: Steps) -> None:
    """Twenty seconds are more than a pod without a drain has, and the task is not tried again."""
    task = platform.start_in_head(TASK, "20", "0")
    until_printed(task, "it runs")
    (worker,) = platform.workers()
    with steps.step("an evicted worker: its task is done, and it goes"):
        platform.evict(worker, NAMESPACE)
        output, _ = task.communicate(timeout=WAIT_SECONDS)
        assert task.returncode == 0, output
        assert "done" in output.splitlines()  # Ray may log afterwards
        until(lambda: worker not in platform.workers(), "the worker is gone")


def test_a_task_survives_the_worker_that_it_ran_on(platform: Platform, steps: Steps) -> None:
    task = platform.start_in_head(TASK, "8", "3")
    until_printed(task, "it runs")
    (worker,) = platform.workers()
    with steps.step("a killed worker: its task is done on another"):
        _kill(platform, NAMESPACE, worker)
        output, _ = task.communicate(timeout=WAIT_SECONDS)
    assert task.returncode == 0, output
    assert "done" in output
    assert worker not in platform.workers()


def test_the_cluster_stays_while_the_operator_is_restarted(platform: Platform, steps: Steps) -> None:
    head = platform.head()
    (before,) = platform.pods(OPERATOR, "ray-system")
    with steps.step("a killed operator is back"):
        _kill(platform, "ray-system", before)
        until(lambda: any(map(is_ready, platform.pods(OPERATOR, "ray-system").values())), "the operator is ready")
    assert before not in platform.pods(OPERATOR, "ray-system")
    assert platform.head() == head


def test_a_killed_head_is_replaced(platform: Platform, steps: Steps) -> None:
    # Workers of a head without fault tolerance are lost with it, and their pods stay until KubeRay's liveness probe has
    # failed for ten minutes (docs/operations.md).
    until(lambda: not platform.workers(), "no worker is left")
    head = platform.head()
    assert head is not None
    with steps.step("a killed head is replaced and ready"):
        _kill(platform, NAMESPACE, head)
        until(lambda: platform.head() not in (None, head), "a new head is ready")
        until(lambda: _state(platform) == "ready", "the RayCluster is ready")
    assert "1 headgroup" in platform.in_head("ray", "status")


def _kill(platform: Platform, namespace: str, pod: str) -> None:
    platform.kubectl("delete", "pod", "-n", namespace, pod, "--grace-period=0", "--force", "--wait=false")


def _state(platform: Platform) -> str | None:
    body = json.loads(platform.kubectl("get", "raycluster", "-n", NAMESPACE, CLUSTER, "-o", "json"))
    state: str | None = body.get("status", {}).get("state")
    return state
