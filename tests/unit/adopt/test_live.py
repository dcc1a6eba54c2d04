"""Which RayClusters can be adopted, by the API server's answers."""

from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, Connection
from stacks.commands.adopt.live import CannotAdoptError, live_cluster
from testbed.fake_cluster import FakeCluster
from tests.unit.adopt.live import live


def test_the_object_is_returned_as_it_is() -> None:
    assert live_cluster(FakeCluster(live()), "research", "training") == live()


def test_a_missing_ray_cluster_is_reported_with_the_existing_ones() -> None:
    with pytest.raises(CannotAdoptError, match=r"no RayCluster 'serving' .* RayClusters there: training, tuning"):
        live_cluster(FakeCluster(live(), live(name="tuning")), "research", "serving")


@pytest.mark.parametrize("kind", ["RayService", "RayJob"])
def test_a_service_or_job_is_not_adopted(kind: str) -> None:
    cluster = FakeCluster({**live(name="chat"), "kind": kind})
    cluster.served.add("rayclusters")
    with pytest.raises(CannotAdoptError, match=f"research/chat is a {kind}, and only RayClusters are adopted"):
        live_cluster(cluster, "research", "chat")


def test_a_cluster_without_kuberay_has_another_message_than_one_without_the_object() -> None:
    with pytest.raises(CannotAdoptError, match=r"has no RayClusters .* is this the right context"):
        live_cluster(FakeCluster(), "research", "training")


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"ownerReferences": [{"kind": "RayService", "name": "chat"}]}, "belongs to RayService chat"),
        ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "is being deleted"),
    ],
)
def test_a_ray_cluster_that_will_be_deleted_or_reverted_is_refused(metadata: dict[str, Any], shown: str) -> None:
    with pytest.raises(CannotAdoptError, match=shown):
        live_cluster(FakeCluster(live(**metadata)), "research", "training")


def test_a_context_that_the_kubeconfig_does_not_have() -> None:
    cluster = FakeCluster(connection=Connection("staging"))
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(CannotAdoptError, match="with context 'staging': no usable kubeconfig"):
        live_cluster(cluster, "research", "training")
