"""What a tenant relies on when a connection is checked and a job is submitted."""

import asyncio
from typing import Any

import pytest

from components import waiting
from components.cluster import path_of
from components.dynamic.reached import Wait
from components.external_cluster import component
from components.external_cluster.component import (
    ExternalRayCluster,
    ExternalRayClusterArgs,
    SubmittedJob,
    SubmittedJobArgs,
)
from components.external_cluster.manifests import connection_check, submission
from components.external_cluster.progress import ConnectionFailedError, next_check, until_reached
from components.objects import Object
from components.ray_job.manifests import RUN_ANNOTATION
from components.ray_job.settings import RayJobSettings
from testbed.fake_cluster import FakeCluster, of_all_sessions
from testbed.recorder import Recorder, record
from tests.unit.external_cluster.test_manifests import cluster

RUN = "0123456789abcdef"


def job(*conditions: str, run: str = RUN, **status: Any) -> dict[str, Any]:
    """A live Job with these conditions."""
    true = [{"type": each, "status": "True", "reason": "BackoffLimitExceeded"} for each in conditions]
    metadata = {"uid": "11112222-3333", "annotations": {RUN_ANNOTATION: run}}
    return {"metadata": metadata, "status": {"conditions": true, **status}}


def pod(phase: str, message: str = "") -> dict[str, Any]:
    ended = [{"name": "ray", "state": {"terminated": {"message": f"{message}\n"}}}] if message else []
    metadata = {"name": "lab-x", "creationTimestamp": "2026-01-01T10:00:00Z"}
    return {"metadata": metadata, "status": {"phase": phase, "containerStatuses": ended}}


JOBS, PODS = path_of("batch/v1", "jobs", "team-a"), path_of("v1", "pods", "team-a")


class Live(FakeCluster):
    """An API server with a Job, whatever its name, and its pods."""

    def has(self, job: dict[str, Any] | None, pods: list[dict[str, Any]] | None = None) -> None:
        for name in ("count", "lab", "lab-external"):
            self.objects |= {f"{JOBS}/{name}": job} if job else {}
        self.objects[PODS] = {"items": pods or []}


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> Live:
    made = Live()
    of_all_sessions(monkeypatch, made)
    made.has(None)
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0.0)
    return made


def registered(message: str | None = None) -> tuple[Recorder, dict[str, Any]]:
    """The resources, and the summary of the cluster."""
    found: dict[str, Any] = {}
    settings = RayJobSettings(name="count", entrypoint="python count.py", external_cluster="lab")

    def program() -> None:
        check = Object("connection", connection_check(cluster(), []))
        args = ExternalRayClusterArgs(cluster(), [check], "team-a", "team-a")
        made = ExternalRayCluster("team-a/lab", args)
        job = Object("submission", submission(settings, cluster(), []))
        SubmittedJob("team-a/count", SubmittedJobArgs(settings, [job], cluster(), "team-a", made.state))
        made.summary.apply(found.update)

    return record(program, {"team-a/lab-connected": {"status": message}}), found


@pytest.mark.usefixtures("live")
def test_only_another_run_replaces_a_job() -> None:
    recorder, _ = registered()
    for name in ("team-a/lab-connection", "team-a/count-submission"):
        made = recorder.registered[name]
        assert made.type == "kubernetes:batch/v1:Job"
        assert made.replaced_on == (f'metadata.annotations["{RUN_ANNOTATION}"]',)
        assert set(made.ignored) == {"metadata.labels", *(f"spec.{key}" for key in made.inputs["spec"])}


@pytest.mark.usefixtures("live")
def test_a_job_is_submitted_after_its_cluster_was_checked() -> None:
    recorder, _ = registered()
    assert recorder.made_before("team-a/lab-connection", "team-a/lab-connected")


@pytest.mark.usefixtures("live")
def test_outputs_are_what_the_check_has_reported() -> None:
    _, found = registered('{"rayVersion": "2.60.0", "workers": 3, "largestGpus": 8}')
    assert (found["state"], found["largestGpus"], found["status"]["workers"]["ready"]) == ("ready", 8, 3)
    _, simulated = registered("done")
    assert (simulated["largestGpus"], simulated["workerGroups"]) == (0, [])


def test_a_failed_check_fails_its_own_resource_with_its_reason(live: Live) -> None:
    live.has(job("Failed"), [pod("Failed", "lab at https://ray.example.com:8265 refuses the token")])
    wait = component._until(live, "External Ray cluster lab", "lab", "succeeded", 1)
    with pytest.raises(
        ConnectionFailedError, match=r"External Ray cluster lab in namespace team-a: lab at .* refuses the token"
    ):
        asyncio.run(_run(wait))


async def _run(wait: Wait) -> None:
    await wait("team-a", lambda _: None)


def test_a_failed_check_is_made_again_and_no_other(live: Live) -> None:
    again = f"{RUN}-11112222"
    assert next_check(live, "team-a", "lab", RUN) == RUN
    for found, expected in (
        (job(), RUN),
        (job("Complete"), RUN),
        (job("Failed"), again),
        (job("Complete", run=again), again),
        (job("Complete", run="another"), RUN),
    ):
        live.has(found)
        assert next_check(live, "team-a", "lab", RUN) == expected


@pytest.mark.parametrize(
    ("found", "stage", "reached"),
    [
        (job(ready=1), "running", "RUNNING"),
        (job("Complete"), "running", "SUCCEEDED"),
        (job("Complete"), "succeeded", "SUCCEEDED"),
    ],
)
def test_how_far_a_job_is(live: Live, found: dict[str, Any], stage: Any, reached: str) -> None:
    live.has(found)
    assert asyncio.run(until_reached(live, "team-a", "count", stage, 1, lambda _: None)) == reached


@pytest.mark.parametrize(
    ("found", "pods", "reason"),
    [
        (job("Failed"), [pod("Failed", "FAILED: exit code 3")], "FAILED: exit code 3"),
        (job("Failed"), [], "BackoffLimitExceeded"),
        (job(ready=1), [pod("Running")], "not there after 0 s: Running"),
        (job(), [], "not there after 0 s: it has no pod yet"),
        (None, [], "Job team-a/count does not exist"),
    ],
)
def test_why_a_job_does_not_succeed(live: Live, found: dict[str, Any] | None, pods: list[Any], reason: str) -> None:
    live.has(found, pods)
    with pytest.raises(ConnectionFailedError, match=reason):
        asyncio.run(until_reached(live, "team-a", "count", "succeeded", 0, lambda _: None))
