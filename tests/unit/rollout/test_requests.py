"""What is sent to the API server to delete pods, to close worker groups and to ask Ray in the head."""

import json
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, ConflictError, ForbiddenError
from components.rollout.pods import Pods, UnknownRayError
from components.rollout.retirement import Groups
from testbed.fake_cluster import FakeCluster


def pod(name: str, kind: str, cluster: str = "training") -> dict[str, Any]:
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": kind}
    metadata = {"namespace": "team-a", "name": name, "uid": f"of {name}", "resourceVersion": "7", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "ray"}]}}


HEAD, WORKER = pod("head", "head"), pod("worker", "worker")


def test_the_pods_are_those_of_ray() -> None:
    cluster = FakeCluster(HEAD, WORKER, pod("clean-up", "redis-cleanup"), pod("other", "worker", "serving"))
    assert Pods(cluster, "team-a", "training").all() == [HEAD, WORKER]


def test_only_this_pod_is_deleted_and_only_if_it_has_not_changed() -> None:
    cluster = FakeCluster(HEAD, WORKER)
    Pods(cluster, "team-a", "training").delete(WORKER)
    Pods(cluster, "team-a", "training").delete(HEAD, unchanged=True)
    assert [each.body for each in cluster.changes] == [
        {"preconditions": {"uid": "of worker"}},
        {"preconditions": {"uid": "of head", "resourceVersion": "7"}},
    ]
    Pods(cluster, "team-a", "training").delete(HEAD)  # It is gone.
    cluster.fail(ConflictError("the UID in the precondition does not match"))
    Pods(cluster, "team-a", "training").delete(HEAD)
    cluster.fail(ForbiddenError("pods is forbidden"))
    with pytest.raises(ForbiddenError):
        Pods(cluster, "team-a", "training").delete(HEAD)


def test_a_group_is_closed_unless_the_list_has_changed() -> None:
    metadata = {"namespace": "team-a", "name": "training"}
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata}
    groups = [{"groupName": "gpu", "replicas": 3, "maxReplicas": 5}]
    cluster = FakeCluster({**body, "spec": {"workerGroupSpecs": groups}})
    live = Groups(cluster, "team-a", "training")
    live.shrink(0, {"groupName": "another"}, 0, [])
    assert live.all() == groups
    live.shrink(0, groups[0], 1, ["worker"])
    numbers = {"minReplicas": 0, "maxReplicas": 1, "replicas": 1}
    assert live.all() == [{"groupName": "gpu", **numbers, "scaleStrategy": {"workersToDelete": ["worker"]}}]


def test_ray_in_the_head_is_asked_by_a_script() -> None:
    cluster = FakeCluster()
    cluster.commands = lambda *asked: (f"a warning of Ray\n{json.dumps({'asked': asked[:3]})}", "")
    found = Pods(cluster, "team-a", "training").run_in_head([WORKER, HEAD], "script")
    assert found == {"asked": ["team-a", "head", "ray"]}
    cluster.commands = lambda *_: ("", "Traceback\nConnectionError: no GCS\n\n")
    with pytest.raises(UnknownRayError, match="Ray in its pod head does not answer: ConnectionError: no GCS"):
        Pods(cluster, "team-a", "training").run_in_head([HEAD], "script")
    cluster.fail(ClusterUnreachableError("a command cannot be run in its pod head: Forbidden"))
    with pytest.raises(UnknownRayError, match="in its pod head: Forbidden"):
        Pods(cluster, "team-a", "training").run_in_head([HEAD], "script")
