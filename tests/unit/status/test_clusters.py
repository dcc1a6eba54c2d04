"""The status of a RayCluster by what the API server returns of it."""

import pytest

from stacks.commands.status.clusters import ClusterStatus, Gpus, Group, State, missing
from tests.unit.status.live import (
    MADE,
    NO_ROOM,
    READY,
    STARTING,
    SUSPENDED,
    cluster,
    condition,
    found,
    metadata,
    owned,
    pod,
    ray_cluster,
    warning,
)

QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "research"}}


def test_a_ready_cluster_holds_the_gpus_of_its_pods_on_nodes() -> None:
    shown = cluster(ray_cluster("training", *READY, replicas=1), pod("head"), pod("worker", gpus=8))
    assert (shown.state, shown.ok, shown.reasons) == (State.READY, True, ())
    assert shown.gpus == Gpus(held=8, waiting=0, most=24)
    assert shown.groups == (Group("a100-8gpu", ready=1, desired=1),)
    assert (shown.head, shown.age, shown.owner) == ("Running", 7200, None)
    assert shown.conditions[0] == {
        "type": "HeadPodReady",
        "status": "True",
        "reason": "Reported",
        "message": "",
        "since": MADE,
    }


def test_a_worker_without_a_node_waits_and_its_cluster_is_ready_all_the_same() -> None:
    shown = cluster(ray_cluster("training", *READY, replicas=2), pod("head"), pod("worker", gpus=8, node=None))
    assert (shown.state, shown.gpus) == (State.READY, Gpus(held=0, waiting=8, most=24))
    assert shown.reasons == (f"pod worker is not scheduled: {NO_ROOM}",)
    assert shown.groups == (Group("a100-8gpu", ready=0, desired=2),)


def test_a_group_without_replicas_has_its_minimum_as_kuberay_does() -> None:
    body = ray_cluster("training", *READY)
    [its_group] = body["spec"]["workerGroupSpecs"]
    del its_group["replicas"]
    its_group |= {"minReplicas": 2, "numOfHosts": 2}
    assert cluster(body).groups == (Group("a100-8gpu", ready=0, desired=4),)


def test_a_pod_that_pulls_its_image_holds_its_gpus_and_an_ended_one_holds_none() -> None:
    pulls = pod("pulls", gpus=8, phase="Pending", conditions=[])
    assert cluster(ray_cluster("training", *READY), pulls).gpus.held == 8
    assert cluster(ray_cluster("training", *READY), pod("ended", gpus=8, phase="Failed")).gpus.held == 0


def test_a_cluster_that_is_not_ready_names_condition_pod_and_warning() -> None:
    refused = warning("training", "exceeded quota: ray-platform", kind="RayCluster")
    other = warning("research", "of another cluster", kind="RayCluster")
    shown = cluster(ray_cluster("training", *STARTING), pod("head", node=None), events=[refused, other])
    assert (shown.state, shown.ok, shown.head) == (State.NOT_READY, False, "Pending")
    assert shown.reasons == (
        "HeadPodReady is False: containers not ready",
        "RayClusterProvisioned is False: no",
        f"pod head is not scheduled: {NO_ROOM}",
        "RayCluster training: R: exceeded quota: ray-platform",
    )


def test_a_gang_that_volcano_has_not_started_waits() -> None:
    gang = {
        "metadata": metadata("ray-training-pg", ownerReferences=owned("RayCluster", "training")),
        "spec": {"queue": "research"},
        "status": {"phase": "Pending", "conditions": [condition("Unschedulable", "True", "3/3 tasks unschedulable")]},
    }
    shown = cluster(ray_cluster("training", *STARTING), backend="volcano", podgroups=[gang])
    assert (shown.state, shown.reasons[0]) == (State.WAITING, "it waits in its queue: 3/3 tasks unschedulable")
    admitted = {**gang, "status": {"phase": "Inqueue"}}
    [line, *_] = cluster(ray_cluster("training", *STARTING), backend="volcano", podgroups=[admitted]).reasons
    assert line == "it waits in its queue: its queue has admitted it, and its pods have no nodes yet"
    started = {**gang, "status": {**gang["status"], "phase": "Running"}}
    assert cluster(ray_cluster("training", *STARTING), backend="volcano", podgroups=[started]).state is State.NOT_READY


def test_a_cluster_that_kueue_suspends_waits_and_one_that_its_spec_suspends_does_not() -> None:
    workload = {
        "metadata": metadata("workload", ownerReferences=owned("RayCluster", "training")),
        "status": {"conditions": [condition("QuotaReserved", "False", "8 more needed")]},
    }
    queued = ray_cluster("training", SUSPENDED, suspend=True, metadata=QUEUED)
    shown = cluster(queued, backend="kueue", workloads=[workload])
    assert (shown.state, shown.ok, shown.reasons[0]) == (State.WAITING, False, "it waits in its queue: 8 more needed")
    assert cluster(queued, backend="kueue").reasons[0] == "it waits in its queue: Kueue has not reported why"
    rests = cluster(ray_cluster("training", SUSPENDED, suspend=True), backend="kueue")
    assert (rests.state, rests.ok, rests.reasons) == (State.SUSPENDED, True, ())
    assert (rests.groups, rests.gpus.most) == ((Group("a100-8gpu", ready=0, desired=0),), 24)


def test_a_deleted_cluster_names_its_finalizers() -> None:
    leaving = {"deletionTimestamp": MADE, "finalizers": ["ray.io/gcs-ft-redis-cleanup-finalizer"]}
    shown = cluster(ray_cluster("training", *READY, metadata=leaving))
    assert (shown.state, shown.ok) == (State.DELETING, False)
    [line] = shown.reasons
    assert line.endswith("and stays until its finalizers are gone: ray.io/gcs-ft-redis-cleanup-finalizer")


def test_a_cluster_that_the_operator_has_not_seen_is_named() -> None:
    [line] = cluster(ray_cluster("training")).reasons
    assert line.startswith("the operator has not looked at the RayCluster")


def test_a_missing_cluster_is_different_from_one_that_must_not_be_read() -> None:
    assert missing("training", found()).state is State.MISSING
    hidden = missing("training", found({"rayclusters": "forbidden"}))
    assert (hidden.state, hidden.reasons) == (State.UNKNOWN, ("it cannot be read: forbidden",))


def test_without_the_right_to_read_pods_their_numbers_are_unknown() -> None:
    shown = cluster(ray_cluster("training", *READY), unreadable={"pods": "forbidden"})
    assert (shown.state, shown.gpus) == (State.READY, Gpus(held=None, waiting=None, most=24))
    assert shown.groups == (Group("a100-8gpu", ready=None, desired=1),)


@pytest.mark.parametrize(
    ("scales", "most", "gpus"),
    [(True, 3, 24), (True, 2**31 - 1, None), (False, 3, 16)],
    ids=["at most", "any", "fixed"],
)
def test_a_cluster_can_grow_to_its_most_workers(scales: bool, most: int, gpus: int | None) -> None:
    body = ray_cluster("training", *READY, replicas=2, most=most, enableInTreeAutoscaling=scales)
    assert cluster(body).gpus.most == gpus


def test_the_owner_of_a_cluster_is_named() -> None:
    of_a_job = ray_cluster("nightly-x", *READY, metadata={"ownerReferences": owned("RayJob", "nightly")})
    shown: ClusterStatus = cluster(of_a_job, in_stack_file=False)
    assert (shown.owner, shown.in_stack_file) == ("RayJob nightly", False)
