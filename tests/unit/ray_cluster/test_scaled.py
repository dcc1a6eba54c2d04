"""An update keeps the autoscaler's live values of a RayCluster."""

from typing import Any

import pytest

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


def test_a_cluster_that_somebody_else_suspended_stays_so() -> None:
    for live in (None, suspended("kubectl-patch"), suspended()):
        assert _resumed(body("one"), live, OURS) == body("one")


def test_a_cluster_that_the_stack_file_suspends_stays_so() -> None:
    desired = body("one")
    desired["spec"]["suspend"] = True
    assert _resumed(desired, suspended(OURS), OURS) == desired
