"""Which RayCluster rests, and what wakes it."""

from collections.abc import Callable
from typing import Any

import pytest

from components.payloads.idle_termination import FIELD_MANAGER
from core.body import Body
from stacks.commands.status.clusters import State
from stacks.commands.status.targets import NotWokenError, target, wake_patch
from tests.unit.planning.stacks import cluster as planned
from tests.unit.planning.stacks import stack, tenant
from tests.unit.status.live import READY, SUSPENDED, cluster, found, metadata, ray_cluster

SINCE = "2026-01-01T11:00:00Z"
BY_IDLE_TERMINATION = {
    "managedFields": [{"manager": FIELD_MANAGER, "time": SINCE, "fieldsV1": {"f:spec": {"f:suspend": {}}}}]
}


def resting(**more: Any) -> Body:
    return ray_cluster("training", SUSPENDED, suspend=True, metadata={**BY_IDLE_TERMINATION, **more})


def woken(body: Body, **settings: Any) -> dict[str, Any] | None:
    known = stack(tenant("team-a"), **settings)
    return wake_patch(target("training", {"team-a": found(rayclusters=[body])}), known)


def test_a_cluster_that_rests_is_as_desired_and_shows_since_when() -> None:
    shown = cluster(resting())
    assert (shown.state, shown.ok) == (State.RESTING, True)
    assert shown.reasons == (f"it rests since {SINCE}: `python -m stacks wake STACK NAMESPACE/NAME` wakes it",)


def test_waking_sets_suspend_to_false_because_kuberay_ignores_its_absence() -> None:
    asked = woken(resting())
    assert asked
    assert (asked["method"], asked["path"]) == ("PATCH", "/apis/ray.io/v1/namespaces/team-a/rayclusters/training")
    assert asked["body"] == {"spec": {"suspend": False}}
    assert asked["query"] != {"fieldManager": FIELD_MANAGER}


def test_a_suspended_cluster_without_the_field_is_woken_too() -> None:
    lost = ray_cluster("training", SUSPENDED)
    assert woken({**lost, "status": {**lost["status"], "state": "suspended"}})


def test_a_cluster_that_runs_is_not_changed() -> None:
    assert woken(ray_cluster("training", *READY)) is None


@pytest.mark.parametrize(
    ("name", "suspended", "why"),
    [
        ("training", lambda: resting(labels={"kueue.x-k8s.io/queue-name": "research"}), "suspended by Kueue"),
        ("nightly", resting, "RayJob team-a/nightly is no RayCluster"),
        ("training", lambda: resting(deletionTimestamp=SINCE), f"is being deleted since {SINCE}"),
    ],
)
def test_what_is_not_woken(name: str, suspended: Callable[[], Body], why: str) -> None:
    job = {"metadata": metadata("nightly"), "spec": {}}
    there = {"team-a": found(rayclusters=[suspended()], rayjobs=[job])}
    with pytest.raises(NotWokenError, match=why):
        wake_patch(target(name, there), stack(tenant("team-a")))


def test_what_the_stack_file_suspends_is_changed_there() -> None:
    known = stack(tenant("team-a", planned("training", overrides={"suspend": True})))
    with pytest.raises(NotWokenError, match="the stack file suspends"):
        wake_patch(target("training", {"team-a": found(rayclusters=[resting()])}), known)
