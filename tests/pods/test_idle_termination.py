"""A RayCluster that rests while nobody uses it, on real pods; a job that selects it wakes it."""

import json
import time
from typing import Any

import pytest

from components.payloads.idle_termination import LOOK_SECONDS, NAME
from components.ray_job.manifests import SUBMITTER
from testbed.pods.platform import NAMESPACE, SMALL, Platform, pods_cluster
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(400, func_only=True)]

RESTS, JOB = "rests", "on-standing"

TIMEOUT_SECONDS = 20


def resting() -> dict[str, Any]:
    """A head that is suspended when nobody uses it."""
    same = {key: value for key, value in pods_cluster().items() if key in ("rayVersion", "image", "head")}
    options = {"timeoutSeconds": TIMEOUT_SECONDS}
    return {"name": RESTS, **same, "autoscaling": False, "idleTerminationOptions": options}


@pytest.fixture(scope="module")
def platform(without_clusters: Platform, steps: Steps) -> Platform:
    """The stack with this RayCluster, which is ready."""
    without_clusters.stack.edit(lambda settings: settings["tenants"][0].update(clusters=[resting()]))
    with steps.step("`pulumi up` of a RayCluster that rests"):
        without_clusters.stack.up()
    return without_clusters


def state(platform: Platform) -> str:
    """The state of the RayCluster that rests, as `status` shows it."""
    shown = json.loads(platform.stacks("status", str(platform.stack.file), "--format", "json"))
    (found,) = (each for each in shown["tenants"][0]["clusters"] if each["cluster"] == RESTS)
    return str(found["state"])


CONNECTED = """
    import sys, ray
    ray.init(namespace="work", logging_level="ERROR")

    @ray.remote(num_cpus=0)
    class Stays:
        pass

    actor = Stays.options(name="stays", lifetime="detached").remote()
    ray.get(actor.__ray_ready__.remote())
    print("connected", flush=True)
    sys.stdin.read()
"""
"""A driver that leaves an actor behind."""

END = """
    import time, ray
    from ray.job_submission import JobStatus, JobSubmissionClient
    client = JobSubmissionClient("http://127.0.0.1:8265")
    job = client.submit_job(entrypoint="python -V", runtime_env={"working_dir": "https://127.0.0.1:1/none.zip"})
    while not client.get_job_status(job).is_terminal():
        time.sleep(0.5)
    print(client.get_job_status(job), client.get_job_info(job).driver_info)
    ray.init(namespace="work", logging_level="ERROR")
    ray.kill(ray.get_actor("stays"))
"""
"""A job that ends before it has a driver; then the actor's end."""


def test_an_idle_cluster_rests_and_a_woken_one_stays_while_somebody_uses_it(platform: Platform) -> None:
    until(lambda: state(platform) == "resting", "it rests")
    assert platform.head(RESTS) is None
    platform.stacks("wake", str(platform.stack.file), RESTS)
    until(lambda: platform.head(RESTS), "its head runs again")
    head = platform.head(RESTS)
    assert head
    with platform.start_in(head, "ray-head", CONNECTED) as driver:
        assert driver.stdout
        assert "connected\n" in iter(driver.stdout.readline, "")
        time.sleep(TIMEOUT_SECONDS + LOOK_SECONDS)
        assert platform.head(RESTS) == head
        assert "is used: driver: Number of active drivers: 1" in log(platform)
        driver.kill()
    until(lambda: "is used: 1 actors, such as Stays in namespace work" in log(platform), "only its actor uses it")
    with platform.start_in(head, "ray-head", END) as ending:
        output, _ = ending.communicate(timeout=300)
    assert "FAILED None" in output
    until(lambda: state(platform) == "resting", "it rests again")


def with_a_job(settings: dict[str, Any]) -> None:
    """A job on the RayCluster."""
    count = "import ray; ray.init(); print('ran on', len(ray.nodes()), 'node')"
    submitter = {"spec": {"containers": [{"name": SUBMITTER, "resources": SMALL}]}}
    job = {"name": JOB, "entrypoint": f'python -c "{count}"', "clusterSelector": {"ray.io/cluster": RESTS}}
    settings["tenants"][0]["jobs"] = [{**job, "submitterPodTemplate": submitter, "waitFor": "succeeded"}]


def test_a_job_wakes_the_cluster_that_it_selects_and_runs_there(platform: Platform, steps: Steps) -> None:
    until(lambda: state(platform) == "resting", "it rests")
    platform.stack.edit(with_a_job)
    with steps.step("`pulumi up` of a job that wakes a RayCluster"):
        platform.stack.up()
    job = json.loads(platform.kubectl("get", "rayjob", "-n", NAMESPACE, JOB, "-o", "json"))
    assert (job["status"]["jobStatus"], job["status"]["rayClusterName"]) == ("SUCCEEDED", RESTS)
    # The RayJob has succeeded when Ray reports its end; the submitter prints the last lines later.
    assert "ran on 1 node" in platform.kubectl("logs", "--follow", "-n", NAMESPACE, f"job/{JOB}")
    until(lambda: state(platform) == "resting", "it rests again, although the RayJob exists")


def log(platform: Platform) -> str:
    return platform.kubectl("logs", "-n", NAMESPACE, f"deployment/{NAME}")
