"""RayJobs of a live stack: what starts their jobs, and what does not."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from components.ray_cluster import readiness
from components.ray_job import progress
from components.ray_job.progress import JobFailedError, until_reached
from components.ray_job.settings import JOB_LABEL
from local.rehearsal import Rehearsal
from testbed.platform_stack import Rays, Stack, training
from testbed.pods.steps import until
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(600)]

NAMESPACE, NAME = "team-a", "count"

LABEL = f"{JOB_LABEL}={NAME}"


@pytest.fixture(scope="module")
def jobs(cluster: Rehearsal) -> Rays:
    return Rays(cluster, "rayjobs")


def job(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = settings["tenants"][0]["jobs"][0]
    return found


def add(settings: dict[str, Any]) -> None:
    image = {key: training(settings)[key] for key in ("rayVersion", "image")}
    settings["tenants"][0]["jobs"] = [{"name": NAME, "entrypoint": "python count.py", "cluster": image}]


@pytest.fixture(scope="module")
def dev(stack_on_operator: MakeStack) -> Iterator[Stack]:
    """The dev stack with a RayJob. The tests use it in their order; each needs `up`."""
    made = stack_on_operator("dev")
    yield made
    made.destroy()


@pytest.fixture
def up(dev: Stack) -> Stack:
    dev.reset_file()
    dev.edit(add)
    dev.settle()
    return dev


def test_it_gets_a_cluster_of_its_own_and_a_pod_that_submits(up: Stack, rays: Rays, core: client.CoreV1Api) -> None:
    until(lambda: rays.named(NAMESPACE, LABEL), "KubeRay has created its RayCluster")
    # The namespace is at level restricted, which refuses the pod that KubeRay would create by itself.
    until(lambda: core.list_namespaced_pod(NAMESPACE, label_selector=f"job-name={NAME}").items, "its submitter starts")
    assert rays.exists(NAMESPACE, "training")
    up.changes_nothing()


def test_neither_drift_nor_a_refresh_starts_it_again(up: Stack, jobs: Rays) -> None:
    uid = jobs.read(NAMESPACE, NAME)["metadata"]["uid"]
    jobs.patch(NAMESPACE, NAME, {"spec": {"entrypoint": "python other.py", "activeDeadlineSeconds": 7200}})
    up.changes_nothing(refreshed=True)
    up.edit(lambda settings: settings["tenants"][0].update(owner="ml-research"))
    up.pulumi("up", "--yes", "--skip-preview", "--refresh")
    assert jobs.read(NAMESPACE, NAME)["metadata"]["uid"] == uid


def test_suspending_it_deletes_its_cluster_and_not_itself(up: Stack, jobs: Rays, rays: Rays) -> None:
    # A simulated submitter ends, and KubeRay soon finds that Ray has no such job: an ended job cannot be suspended.
    up.edit(lambda settings: job(settings).update(submissionMode="HTTPMode"))
    up.up()
    until(lambda: rays.named(NAMESPACE, LABEL), "KubeRay has created its RayCluster")
    uid = jobs.read(NAMESPACE, NAME)["metadata"]["uid"]
    up.edit(lambda settings: job(settings).update(suspend=True))
    up.up()
    until(lambda: not rays.named(NAMESPACE, LABEL), "its RayCluster is deleted")
    up.edit(lambda settings: job(settings).pop("suspend"))
    up.up()
    until(lambda: rays.named(NAMESPACE, LABEL), "it is resumed")
    assert jobs.read(NAMESPACE, NAME)["metadata"]["uid"] == uid


def test_another_run_id_replaces_it(up: Stack, jobs: Rays) -> None:
    uid = jobs.read(NAMESPACE, NAME)["metadata"]["uid"]
    up.edit(lambda settings: job(settings).update(runId="2"))
    assert "1 to replace" in up.pulumi("preview").output
    up.up()
    assert jobs.read(NAMESPACE, NAME)["metadata"]["uid"] != uid
    up.changes_nothing()


def test_a_job_that_does_not_run_in_time_is_reported_with_what_it_waits_for(
    up: Stack, cluster: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (progress, readiness):
        monkeypatch.setattr(module, "connect", lambda _: cluster.client())
    head = {"podTemplate": {"spec": {"nodeSelector": {"example.com/none": "true"}}}}
    up.edit(lambda settings: job(settings)["cluster"].update(head=head))
    up.up()
    waiting = until_reached("rehearsal", NAMESPACE, NAME, "running", "ray-system", 8, lambda _: None)
    with pytest.raises(JobFailedError) as error:
        asyncio.run(waiting)
    assert str(error.value).startswith("RayJob team-a/count does not run after 8 s: Initializing")
    assert "didn't match Pod's node affinity/selector" in str(error.value)


def test_it_goes_with_its_entry_and_leaves_nothing(up: Stack, jobs: Rays, rays: Rays) -> None:
    up.edit(lambda settings: settings["tenants"][0].pop("jobs"))
    up.up()
    assert not jobs.exists(NAMESPACE, NAME)
    until(lambda: not rays.named(NAMESPACE, LABEL), "its RayCluster is deleted")
    assert rays.exists(NAMESPACE, "training")
