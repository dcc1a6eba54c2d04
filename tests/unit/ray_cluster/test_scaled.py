"""An update keeps the autoscaler's live values of a RayCluster, and restores writes that it overwrote."""

import json
from typing import Any

import pytest

from components.cluster import path_of
from components.ray_cluster.changes import overwritten, restore
from components.ray_cluster.request import (
    DIGEST,
    Scaled,
    UnknownScaleError,
    _resumed,
    as_scaled,
    as_scaled_once,
    read_scaled,
    unscaled_since,
)
from testbed.fake_cluster import FakeCluster


def body(*groups: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": "training", "namespace": "team-a", "labels": labels, "annotations": {"of": "the stack"}}
    named = [{"groupName": name, "minReplicas": 0, "maxReplicas": 9} for name in groups]
    return {"metadata": metadata, "spec": {"enableInTreeAutoscaling": True, "workerGroupSpecs": named}}


def alive(applied: dict[str, Any] | None, **replicas: int) -> Scaled:
    digest = as_scaled(applied, None)[0]["metadata"]["annotations"][DIGEST] if applied else None
    return Scaled(digest, {name: {"replicas": number} for name, number in replicas.items()})


def sent(desired: dict[str, Any], live: Scaled | None) -> dict[str, Any]:
    """The applied replicas by group, in their order."""
    groups = as_scaled(desired, live)[0]["spec"]["workerGroupSpecs"]
    return {group["groupName"]: group.get("replicas") for group in groups}


def test_a_new_cluster_is_sent_as_configured() -> None:
    made, ignored = as_scaled(body("one", "two"), None)
    assert made["spec"] == body("one", "two")["spec"]
    assert made["metadata"]["annotations"]["of"] == "the stack"
    assert ignored == []


def test_without_an_edit_the_autoscalers_fields_are_ignored() -> None:
    desired = body("one", "two")
    assert as_scaled(desired, alive(desired, one=3, two=0))[1] == [
        "spec.workerGroupSpecs[0].replicas",
        "spec.workerGroupSpecs[0].scaleStrategy",
        "spec.workerGroupSpecs[1].replicas",
        "spec.workerGroupSpecs[1].scaleStrategy",
    ]


@pytest.mark.parametrize("before", [body("one", "two"), None], ids=["edited", "of somebody else"])
def test_with_an_edit_the_autoscalers_live_fields_are_sent(before: dict[str, Any] | None) -> None:
    desired, live = body("one", "two", team="research"), alive(before, one=3, two=1)
    assert sent(desired, live) == {"one": 3, "two": 1}
    assert as_scaled(desired, live)[1] == []


def test_groups_keep_their_fields_and_places_when_others_are_added_or_removed() -> None:
    live = alive(body("one", "two", "four"), one=3, two=1, four=2)
    assert list(sent(body("eight", "four", "one"), live).items()) == [("one", 3), ("four", 2), ("eight", None)]


def test_workers_to_delete_stay_in_the_list() -> None:
    strategy = {"workersToDelete": ["training-worker-one-x"]}
    live = Scaled("another", {"one": {"replicas": 1, "scaleStrategy": strategy}})
    assert as_scaled(body("one"), live)[0]["spec"]["workerGroupSpecs"][0]["scaleStrategy"] == strategy


def test_a_value_that_is_known_later_is_no_edit() -> None:
    desired = body("one")
    desired["spec"]["headGroupSpec"] = {"account": object()}
    again = body("one")
    again["spec"]["headGroupSpec"] = {"account": object()}
    assert as_scaled(again, alive(desired, one=1))[1] != []


def test_a_cluster_that_no_longer_scales_takes_the_ownership_of_its_groups() -> None:
    """Ray's autoscaler owns the list after it has scaled: without force the update would be a conflict."""
    scaling = body("one")
    live = alive(scaling, one=3)
    desired = body("one")
    del desired["spec"]["enableInTreeAutoscaling"]
    switched_off = as_scaled_once(desired, live)
    assert switched_off["metadata"]["annotations"]["pulumi.com/patchForce"] == "true"
    assert switched_off["spec"] == desired["spec"]
    now = Scaled(switched_off["metadata"]["annotations"][DIGEST], {})
    assert as_scaled_once(desired, now) == switched_off


@pytest.mark.parametrize("there", [None, Scaled(None, {"one": {"replicas": 3}})], ids=["new", "never scaled"])
def test_a_cluster_that_has_never_scaled_is_sent_without_force(there: Scaled | None) -> None:
    assert as_scaled_once(body("one"), there) == body("one")


def test_an_update_that_would_revert_the_autoscaler_is_refused() -> None:
    live = alive(None, one=3, two=1)
    update = as_scaled(body("one", "new"), live)[0]
    there = body("one", "two")
    there["metadata"] |= {"resourceVersion": "7"}
    cluster = FakeCluster({"apiVersion": "ray.io/v1", "kind": "RayCluster", **there})
    groups = there["spec"]["workerGroupSpecs"]
    groups[0]["replicas"], groups[1]["replicas"] = 3, 1
    assert unscaled_since(update, cluster) == "7"
    groups[0]["replicas"] = 4
    with pytest.raises(UnknownScaleError, match=r"team-a/training: its autoscaler has just scaled one, and nothing"):
        unscaled_since(update, cluster)


OURS = "pulumi-ray-platform-dev"
WITH_SUSPEND: dict[str, Any] = {"f:spec": {"f:suspend": {}}}


def suspended(*managers: str) -> Scaled:
    """A live RayCluster whose `suspend` these managers have set."""
    fields: list[dict[str, Any]] = [{"manager": "kuberay-operator", "fieldsV1": {"f:status": {}}}]
    fields += [{"manager": each, "fieldsV1": WITH_SUSPEND} for each in managers]
    metadata = {"namespace": "team-a", "name": "training", "resourceVersion": "1", "managedFields": fields}
    live = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": {"suspend": True}}
    found = read_scaled(FakeCluster(live), "team-a", "training")
    assert found
    return found


def test_a_cluster_that_this_stack_suspended_is_resumed_explicitly() -> None:
    live = suspended("ray-platform-wake", OURS)
    assert _resumed(body("one"), live, OURS)["spec"]["suspend"] is False


def test_a_cluster_that_somebody_else_or_the_stack_file_suspends_stays_so() -> None:
    for live in (None, suspended("kubectl-patch"), suspended()):
        assert _resumed(body("one"), live, OURS) == body("one")
    desired = body("one")
    desired["spec"]["suspend"] = True
    assert _resumed(desired, suspended(OURS), OURS) == desired


def written(digest: str, **replicas: float) -> dict[str, Any]:
    metadata = {"name": "training", "namespace": "team-a", "annotations": {DIGEST: digest}}
    groups = [{"groupName": name, "replicas": number, "maxReplicas": 9} for name, number in replicas.items()]
    return {"metadata": metadata, "spec": {"workerGroupSpecs": groups}}


def history(*bodies: dict[str, Any]) -> bytes:
    return "".join(json.dumps({"type": "MODIFIED", "object": each}) + "\n" for each in bodies).encode()


SENT = written("new", one=2.0, two=1.0)
"""Numbers come from Pulumi as floats."""


@pytest.mark.parametrize(
    ("events", "lost"),
    [
        ([written("new", one=2, two=1)], {}),
        ([written("old", one=2, two=1), written("new", one=2, two=1)], {}),
        ([written("old", one=3, two=1), written("new", one=2, two=1)], {"one": {"replicas": 3}}),
        (
            [written("old", one=3, two=1), written("old", one=4, two=1), written("new", one=2, two=1)],
            {"one": {"replicas": 4}},
        ),
        ([written("new", one=2, two=1), written("new", one=5, two=1)], {}),
        ([written("old", one=2, two=1, leaving=3), written("new", one=2, two=1)], {}),
        ([], {}),
    ],
    ids=["alone", "status before", "scaled before", "twice", "scaled after", "a group that leaves", "nothing seen"],
)
def test_values_right_before_the_update_are_restored(events: list[dict[str, Any]], lost: dict[str, Any]) -> None:
    assert overwritten(history(*events), SENT) == lost
    # The history has expired.
    assert overwritten(b'{"type": "ERROR", "object": {"code": 410}}\n', SENT) == {}


def test_a_group_is_patched_only_if_unchanged_since_the_update() -> None:
    strategy = {"workersToDelete": ["training-one-x"]}
    before = written("old", one=1, two=1)
    before["spec"]["workerGroupSpecs"][0]["scaleStrategy"] = strategy
    cluster = FakeCluster({"apiVersion": "ray.io/v1", "kind": "RayCluster", **written("new", two=1, one=2)})
    path = path_of("ray.io/v1", "rayclusters", "team-a")
    cluster.streams[path] = [history(before), history(written("new", one=2, two=1))]
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
