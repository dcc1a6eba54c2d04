"""In which order tenants request workers, and how many."""

from collections.abc import Iterator
from typing import Any

import pytest

from local.rehearse import players
from local.rehearse.cluster import Cluster
from local.rehearse.observed import Pod
from local.rehearse.players import Ask, asks, enough, settles
from stacks.planning.plan import plan_of
from tests.unit.planning.stacks import always, cluster, stack, tenant


def of_cpus(**more: Any) -> dict[str, Any]:
    """A RayCluster whose workers have no GPUs."""
    made = cluster("training", workerGroups=[{"groupName": "cpu", "cpu": 16, "memory": "32Gi", **more}])
    del made["workers"]
    return made


def test_tenants_request_in_the_order_of_the_file_and_the_largest_workers_first() -> None:
    plan = plan_of(stack(tenant("b", quota={"gpus": 16}), tenant("a", cluster("fixed", workers=always(8, 1)))))
    assert [(each.cluster, each.group, each.most) for each in asks(plan)] == [
        ("b/training", "a100-8gpu", 2),
        ("b/training", "a100-4gpu", 4),
        ("b/training", "a100-2gpu", 8),
        ("b/training", "a100-1gpu", 16),
    ]


def test_a_group_without_a_cap_requests_as_many_workers_as_fit_on_the_nodes() -> None:
    plan = plan_of(stack(tenant("a", of_cpus())))
    assert [(each.group, each.most) for each in asks(plan)] == [("cpu", 16)]


@pytest.mark.parametrize(("taken", "running", "asked"), [(0, 0, 4), (16, 0, 3), (31, 3, 4), (32, 0, 1), (32, 4, 4)])
def test_one_worker_more_is_requested_than_fits_on_the_free_gpus(taken: int, running: int, asked: int) -> None:
    plan = plan_of(stack(tenant("a")))
    [whole, *_] = asks(plan)
    assert enough(plan, whole, {"a100": taken}, running) == asked


def test_the_maximum_of_workers_without_gpus_is_requested() -> None:
    plan = plan_of(stack(tenant("a", of_cpus(maxReplicas=7))))
    [ask] = asks(plan)
    assert enough(plan, ask, {"a100": 32}, 0) == 7


REFUSED = {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]}


class Moments(Cluster):
    """A RayCluster with one worker, whose status changes to the next each time that it is read."""

    def __init__(self, *statuses: dict[str, Any]) -> None:
        self.statuses: Iterator[dict[str, Any]] = iter(statuses)
        self.read = 0

    def workers(self, name: str, group: str) -> list[Pod]:
        return [Pod(name="one", owner=name, group=group, gpus=1, pool="a100", running=True)]

    def ray(self, name: str) -> dict[str, Any]:
        self.read += 1
        return {"status": next(self.statuses, {})}


@pytest.mark.parametrize(("pods", "rounds"), [(1, 3), (2, 1)])
def test_a_refusal_of_removed_workers_is_ignored(pods: int, rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """KubeRay removes it in its next round, which may be late. Missing pods are refused at once."""
    monkeypatch.setattr(players, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(players, "PAUSE_SECONDS", 0.0)
    cluster, ask = Moments(REFUSED, REFUSED), Ask("a/training", "a100-1gpu", gpus=1, hosts=1, most=2, pools=("a100",))
    assert settles(cluster, ask, pods)
    assert cluster.read == rounds
