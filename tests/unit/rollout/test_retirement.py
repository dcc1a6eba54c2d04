"""The workers of a worker group that leaves the stack file are deleted before the group."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from components.rollout.retirement import Groups, NotRetiredError, retire
from tests.unit.rollout.simulated import Simulated


class SimulatedGroups(Groups):
    """The RayCluster's worker groups, and an operator that deletes the `workersToDelete`."""

    def __init__(self, pods: Simulated, **replicas: int) -> None:
        self._pods = pods
        self.groups: list[dict[str, Any]] = [
            {"groupName": name, "replicas": number, "minReplicas": 1, "maxReplicas": 9}
            for name, number in replicas.items()
        ]

    def all(self) -> list[Mapping[str, Any]]:
        return [dict(group) for group in self.groups]

    def shrink(self, place: int, group: Mapping[str, Any], staying: int, going: Sequence[str]) -> None:
        self.groups[place] |= {"replicas": staying, "maxReplicas": staying, "minReplicas": 0}
        for name in going:
            self._pods.remove(name)


def test_a_group_without_workers_is_removed_at_once(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=0, two=1)
    pods.silent = "asked"
    retire(groups, pods, ["two"], "onIdle", 0)
    assert groups.groups[0]["maxReplicas"] == 9


def test_idle_workers_are_deleted_before_it_and_others_stay(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2, two=1)
    pods.add("first")
    pods.add("second", phase="Pending")
    pods.add("other", group="two", busy=1000)
    retire(groups, pods, ["two"], "onIdle", 0)
    assert sorted(pods.deleted) == ["first", "second"]
    assert [group["replicas"] for group in groups.groups] == [0, 1]


def test_busy_workers_keep_it_and_nothing_is_changed(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2)
    pods.add("idle")
    pods.add("busy", busy=1000)
    with pytest.raises(
        NotRetiredError, match=r"worker group one is removed from the stack file, and has workers \(busy\)"
    ):
        retire(groups, pods, [], "onIdle", 0)
    assert (pods.deleted, pods.drained, groups.groups[0]["maxReplicas"]) == ([], {}, 9)


def test_drain_closes_the_group_and_waits(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2)
    pods.add("idle")
    pods.add("busy", busy=30)
    shown: list[str] = []

    def show(line: str) -> None:
        shown.append(line)
        assert groups.groups[0]["maxReplicas"] != 0

    retire(groups, pods, [], "drain", 60, show)
    assert pods.deleted == ["idle", "busy"]
    assert 30 <= pods.now < 40
    assert shown[-1] == "1 workers of groups to remove are still busy: busy"


def test_drain_ends_at_its_limit(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=1)
    pods.add("busy", busy=1000)
    retire(groups, pods, [], "drain", 60)
    assert 60 <= pods.now < 70


def test_immediate_does_not_ask_ray(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=1)
    pods.add("busy", busy=1000)
    pods.silent = "asked"
    retire(groups, pods, [], "immediate", 0)
    assert (pods.deleted, groups.groups[0]["replicas"]) == (["busy"], 0)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("none", "Set another strategy"),
        ("onIdle", "cannot be determined whether they are busy: no process"),
        ("drain", "cannot be determined"),
    ],
)
def test_a_group_with_workers_in_an_unknown_state_is_kept(pods: Simulated, strategy: Any, message: str) -> None:
    groups = SimulatedGroups(pods, one=1)
    pods.add("unknown")
    pods.silent = "no process"
    with pytest.raises(NotRetiredError, match=message):
        retire(groups, pods, [], strategy, 60)
    assert pods.deleted == []


def test_replicas_without_pods_are_not_created(pods: Simulated) -> None:
    groups = SimulatedGroups(pods, one=2)
    retire(groups, pods, [], "onIdle", 0)
    assert groups.groups[0]["replicas"] == 0
