"""The states of a RayJob, as KubeRay writes them."""

from typing import Any

import pytest

from components.ray_job.progress import failure_of, state_of


def job(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "count", "namespace": "team-a"}, "status": status}


@pytest.mark.parametrize(
    ("body", "state"),
    [
        (job(), "the operator has not seen it yet"),
        (job(jobDeploymentStatus="Initializing"), "Initializing"),
        (job(jobDeploymentStatus="Running", jobStatus="PENDING"), "Running, in Ray PENDING"),
    ],
)
def test_its_state(body: dict[str, Any], state: str) -> None:
    assert state_of(body) == state


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (job(jobDeploymentStatus="Running", jobStatus="FAILED"), None),
        (job(jobDeploymentStatus="Retrying", jobStatus="FAILED"), None),
        (job(jobDeploymentStatus="Complete", jobStatus="SUCCEEDED"), None),
        (job(jobDeploymentStatus="Complete", jobStatus="STOPPED"), "has failed: STOPPED"),
        (
            job(jobDeploymentStatus="Failed", jobStatus="FAILED", reason="AppFailed", message="exit code 3"),
            "has failed: AppFailed: exit code 3",
        ),
        (job(jobDeploymentStatus="Failed", reason="DeadlineExceeded"), "has failed: DeadlineExceeded"),
        (
            job(jobDeploymentStatus="ValidationFailed", reason="ValidationFailed", message="no cluster"),
            "has failed: ValidationFailed: no cluster",
        ),
    ],
)
def test_why_it_can_no_longer_succeed(body: dict[str, Any], failure: str | None) -> None:
    assert failure_of(body) == failure
