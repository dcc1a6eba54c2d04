"""RayJobs of the stack on real pods, with Volcano, in a namespace at level restricted."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from components.ray_job.manifests import SUBMITTER
from components.ray_job.settings import JOB_LABEL
from testbed.platform_stack import training
from testbed.pods.platform import NAMESPACE, Platform, brought_up
from testbed.pods.steps import Steps, until

pytestmark = [pytest.mark.pods, pytest.mark.timeout(400, func_only=True)]

SMALL = {"requests": {"cpu": "50m", "memory": "200Mi"}, "limits": {"cpu": 1, "memory": "1Gi"}}

SUCCEEDS, FAILS, WAITS = "succeeds", "fails", "waits"


def jobs(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """A job in each mode that the namespace allows, and one that no node has room for."""
    head = training(settings)["head"]
    cluster = {
        **{key: training(settings)[key] for key in ("rayVersion", "image")},
        "autoscaling": False,
        "head": {**head, "rayStartParams": {**head["rayStartParams"], "num-cpus": "1"}},
    }
    nowhere = {**cluster, "head": {**head, "podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}}
    count = "import ray; ray.init(); print('counted', ray.get(ray.remote(lambda: 6 * 7).remote()))"
    return [
        {
            "name": SUCCEEDS,
            "entrypoint": f'python -c "{count}"',
            "cluster": cluster,
            "submitterPodTemplate": {"spec": {"containers": [{"name": SUBMITTER, "resources": SMALL}]}},
            "waitFor": "succeeded",
        },
        {
            "name": FAILS,
            "entrypoint": "echo no data at s3://bucket && exit 3",
            "submissionMode": "HTTPMode",
            "backoffLimit": 1,
            "cluster": cluster,
        },
        {
            "name": WAITS,
            "entrypoint": "python -V",
            "preRunningDeadlineSeconds": 20,
            "cluster": nowhere,
        },
    ]


def only_jobs(settings: dict[str, Any]) -> None:
    """Volcano schedules, and there is no RayCluster but those of jobs."""
    (tenant,) = settings["tenants"]
    tenant["jobs"] = jobs(settings)
    tenant["clusters"] = []
    tenant["queue"] = {"capability": {"gpus": 8}}
    settings["scheduler"] = {"volcano": {}}


@pytest.fixture(scope="module")
def platform(built: None, tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> Iterator[Platform]:
    """A stack of jobs on a node of its own; `up` ends when the first has succeeded."""
    with brought_up(tmp_path_factory.mktemp("jobs"), steps, only_jobs) as platform:
        yield platform


def status(platform: Platform, name: str) -> dict[str, Any]:
    body = json.loads(platform.kubectl("get", "rayjob", "-n", NAMESPACE, name, "-o", "json"))
    found: dict[str, Any] = body.get("status", {})
    return found


def clusters(platform: Platform, name: str) -> str:
    return platform.kubectl("get", "rayclusters", "-n", NAMESPACE, "-l", f"{JOB_LABEL}={name}", "-o", "name").strip()


def test_a_job_succeeds_its_cluster_is_gone_and_its_log_stays(platform: Platform) -> None:
    until(lambda: not clusters(platform, SUCCEEDS), "its RayCluster is gone")
    assert status(platform, SUCCEEDS)["jobStatus"] == "SUCCEEDED"
    assert "counted 42" in platform.kubectl("logs", "-n", NAMESPACE, f"job/{SUCCEEDS}")


def test_a_failed_job_is_tried_again_and_its_reason_is_readable_when_its_clusters_are_gone(platform: Platform) -> None:
    until(lambda: status(platform, FAILS).get("jobDeploymentStatus") == "Failed", "it has failed")
    until(lambda: not clusters(platform, FAILS), "its RayCluster is gone")
    found = status(platform, FAILS)
    assert (found["reason"], found["failed"]) == ("AppFailed", 2)
    assert "exit code 3" in found["message"]
    assert "no data at s3://bucket" in found["message"]


def test_a_job_that_never_starts_ends_at_its_deadline(platform: Platform) -> None:
    until(lambda: status(platform, WAITS).get("jobDeploymentStatus") == "Failed", "it has failed")
    assert status(platform, WAITS)["reason"] == "PreRunningDeadlineExceeded"
    until(lambda: not clusters(platform, WAITS), "its RayCluster is gone")


def test_no_ended_job_starts_again(platform: Platform) -> None:
    assert "~ jobs" not in platform.stack.changes_nothing(refreshed=True).output
