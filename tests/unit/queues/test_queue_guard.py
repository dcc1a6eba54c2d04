"""What blocks the deletion of a queue."""

from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.dynamic.guards import InUseError, refuse_queue_in_use
from testbed.fake_cluster import FakeCluster

LABEL = "volcano.sh/queue-name"


def ray(kind: str, queue: str | None, **parts: Any) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {LABEL: queue}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": "x", **labels},
        "spec": {},
        **parts,
    }


def refusal(*existing: dict[str, Any]) -> str | None:
    """The refusal of the guard of queue research with these objects; None if it allows the deletion."""
    try:
        refuse_queue_in_use(FakeCluster(*existing), "research", LABEL)
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
def test_a_queue_in_use_is_not_deleted_and_its_users_are_named(there: dict[str, Any]) -> None:
    message = refusal(there)
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
def test_other_objects_and_jobs_that_have_ended_do_not_block_the_deletion(there: dict[str, Any]) -> None:
    assert refusal(there) is None


def test_an_unreachable_api_server_blocks_the_deletion() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(InUseError, match="cannot be determined what uses it: no usable kubeconfig"):
        refuse_queue_in_use(cluster, "research", LABEL)
