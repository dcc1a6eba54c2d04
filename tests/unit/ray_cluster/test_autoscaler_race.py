"""Autoscaler writes that an update overwrote are found in the API server's history and restored."""

import json
from typing import Any

import pytest

from components.cluster import path_of
from components.ray_cluster.changes import overwritten, restore
from components.ray_cluster.request import DIGEST
from testbed.fake_cluster import FakeCluster


def body(digest: str, **replicas: float) -> dict[str, Any]:
    metadata = {"name": "training", "namespace": "team-a", "annotations": {DIGEST: digest}}
    groups = [{"groupName": name, "replicas": number, "maxReplicas": 9} for name, number in replicas.items()]
    return {"metadata": metadata, "spec": {"workerGroupSpecs": groups}}


def history(*bodies: dict[str, Any]) -> bytes:
    return "".join(json.dumps({"type": "MODIFIED", "object": each}) + "\n" for each in bodies).encode()


SENT = body("new", one=2.0, two=1.0)
"""Numbers come from Pulumi as floats."""


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ([body("new", one=2, two=1)], {}),
        ([body("old", one=2, two=1), body("new", one=2, two=1)], {}),
        ([body("old", one=3, two=1), body("new", one=2, two=1)], {"one": {"replicas": 3}}),
        ([body("old", one=3, two=1), body("old", one=4, two=1), body("new", one=2, two=1)], {"one": {"replicas": 4}}),
        ([body("new", one=2, two=1), body("new", one=5, two=1)], {}),
        ([body("old", one=2, two=1, leaving=3), body("new", one=2, two=1)], {}),
        ([], {}),
    ],
    ids=["alone", "status before", "scaled before", "twice", "scaled after", "a group that leaves", "nothing seen"],
)
def test_values_right_before_the_update_are_restored(events: list[dict[str, Any]], lost: dict[str, Any]) -> None:
    assert overwritten(history(*events), SENT) == lost


def test_an_expired_history_restores_nothing() -> None:
    assert overwritten(b'{"type": "ERROR", "object": {"code": 410}}\n', SENT) == {}


def test_a_group_is_patched_only_if_unchanged_since_the_update() -> None:
    strategy = {"workersToDelete": ["training-one-x"]}
    before = body("old", one=1, two=1)
    before["spec"]["workerGroupSpecs"][0]["scaleStrategy"] = strategy
    cluster = FakeCluster({"apiVersion": "ray.io/v1", "kind": "RayCluster", **body("new", two=1, one=2)})
    path = path_of("ray.io/v1", "rayclusters", "team-a")
    cluster.streams[path] = [history(before), history(body("new", one=2, two=1))]
    assert restore(SENT, "41", cluster) == ["one"]
    [change] = cluster.changes
    assert change.path == f"{path}/training"
    assert change.body == [
        {"op": "test", "path": "/spec/workerGroupSpecs/1/groupName", "value": "one"},
        {"op": "test", "path": "/spec/workerGroupSpecs/1/replicas", "value": 2},
        {"op": "add", "path": "/spec/workerGroupSpecs/1/replicas", "value": 1},
        {"op": "add", "path": "/spec/workerGroupSpecs/1/scaleStrategy", "value": strategy},
    ]
    groups = cluster.objects[change.path]["spec"]["workerGroupSpecs"]
    assert groups[1] == {"groupName": "one", "replicas": 1, "maxReplicas": 9, "scaleStrategy": strategy}
