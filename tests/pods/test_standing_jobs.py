"""A job on a RayCluster that stands and rests: it is woken, and the job runs there. With Volcano KubeRay starts no such
job."""

import json
from typing import Any

import pytest

from components.ray_job.manifests import SUBMITTER
from testbed.pods.platform import NAMESPACE, SMALL, Platform
from testbed.pods.steps import Steps, until
from tests.pods.test_idle_termination import RESTS, resting, state

pytestmark = [pytest.mark.pods, pytest.mark.timeout(400, func_only=True)]

JOB = "on-standing"


def without_volcano(settings: dict[str, Any]) -> None:
    """No Volcano and no queue; a RayCluster that rests while nobody uses it, and nothing else."""
    settings.pop("scheduler", None)
    (tenant,) = settings["tenants"]
    kept = {key: tenant[key] for key in ("name", "allowDelete")}
    settings["tenants"] = [{**kept, "clusters": [resting()]}]


def with_a_job(settings: dict[str, Any]) -> None:
    """A job that selects it."""
    job = {
        "name": JOB,
        "entrypoint": "python -c \"import ray; ray.init(); print('ran on', len(ray.nodes()), 'node')\"",
        "clusterSelector": {"ray.io/cluster": RESTS},
        "submitterPodTemplate": {"spec": {"containers": [{"name": SUBMITTER, "resources": SMALL}]}},
        "waitFor": "succeeded",
    }
    settings["tenants"][0]["jobs"] = [job]


def test_a_job_wakes_the_cluster_that_it_selects_and_runs_there(without_clusters: Platform, steps: Steps) -> None:
    platform = without_clusters
    platform.stack.edit(without_volcano)
    with steps.step("`pulumi up` without Volcano, with a RayCluster that rests"):
        platform.stack.up()
    until(lambda: state(platform) == "resting", "it rests")
    platform.stack.edit(with_a_job)
    with steps.step("`pulumi up` of a job that wakes it"):
        platform.stack.up()
    job = json.loads(platform.kubectl("get", "rayjob", "-n", NAMESPACE, JOB, "-o", "json"))
    assert (job["status"]["jobStatus"], job["status"]["rayClusterName"]) == ("SUCCEEDED", RESTS)
    assert "ran on 1 node" in platform.kubectl("logs", "-n", NAMESPACE, f"job/{JOB}")
    until(lambda: state(platform) == "resting", "it rests again, although the RayJob still exists")
