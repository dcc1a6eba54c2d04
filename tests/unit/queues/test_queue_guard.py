"""What blocks the deletion of a queue."""

from pathlib import Path
from typing import Any

import pytest

from components.guard import InUseError
from components.queues import guard
from components.queues.guard import refuse_while_used

pytestmark = pytest.mark.unit

LABEL = "volcano.sh/queue-name"


def ray(kind: str, queue: str | None, **parts: Any) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {LABEL: queue}}
    return {"kind": kind, "metadata": {"namespace": "team-a", "name": "x", **labels}, "spec": {}, **parts}


def refusal(monkeypatch: pytest.MonkeyPatch, *existing: dict[str, Any]) -> str | None:
    """The refusal of the guard of queue research with these objects; None if it allows the deletion."""
    monkeypatch.setattr(guard, "kuberay_objects", lambda *_: existing)
    try:
        refuse_while_used("research", LABEL, None)
    except InUseError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "there",
    [
        ray("RayCluster", "research"),
        ray("RayCluster", "research", spec={"suspend": True}),
        ray("RayService", "research"),
        ray("RayJob", "research", status={"jobDeploymentStatus": "Running"}),
        ray("RayJob", "research", spec={"suspend": True}, status={"jobDeploymentStatus": "Suspended"}),
    ],
)
def test_a_queue_in_use_is_not_deleted_and_its_users_are_named(
    there: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refusal(monkeypatch, there)
    assert message is not None
    assert f"queue 'research' is not deleted, because it is used by {there['kind']} team-a/x" in message


@pytest.mark.parametrize(
    "there",
    [
        ray("RayCluster", "other"),
        ray("RayCluster", None),
        ray("RayJob", "research", status={"jobDeploymentStatus": "Complete"}),
    ],
)
def test_other_objects_and_jobs_that_have_ended_do_not_block_the_deletion(
    there: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(monkeypatch, there) is None


def test_an_unreachable_api_server_blocks_the_deletion(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(InUseError, match="cannot be determined what uses it: no usable kubeconfig"):
        refuse_while_used("research", LABEL, "no-such-context")
