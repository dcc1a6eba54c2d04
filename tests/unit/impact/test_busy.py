"""How many of the pods that an edit stops are busy, as Ray in the head reports it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from components.cluster import Cluster
from components.rollout.pods import UnknownRayError
from stacks.commands.impact import live
from stacks.commands.impact.comparison import Impact, impact_on
from stacks.commands.impact.effects import Effect, Range
from stacks.commands.impact.live import Answer, ask, with_busy
from stacks.commands.impact.ray_pods import Known
from stacks.commands.impact.report import as_object, report
from stacks.commands.impact.sources import ray_clusters
from testbed.fake_cluster import FakeCluster
from tests.unit.impact.stacks import effects_on, ray
from tests.unit.planning.stacks import stack, tenant

NAME = "a/training"
WORKERS = ("w-0", "w-1", "w-2")


def running(cluster: dict[str, Any]) -> dict[str, Known]:
    """The RayCluster with its head and three workers."""
    body = ray_clusters(stack(tenant("a", cluster), redis={}))[NAME]
    pods = [_pod("head", "headgroup"), *(_pod(name, "a100-8gpu") for name in WORKERS)]
    return {NAME: Known(body, Counter(pod["metadata"]["labels"]["ray.io/group"] for pod in pods), pods=pods)}


def _pod(name: str, group: str) -> dict[str, Any]:
    kind = "head" if group == "headgroup" else "worker"
    labels = {"ray.io/cluster": "training", "ray.io/node-type": kind, "ray.io/group": group}
    return {"metadata": {"name": name, "labels": labels}}


def edited(before: dict[str, Any], after: dict[str, Any], answer: Answer) -> Impact:
    there = running(before)
    found = impact_on(there, stack(tenant("a", after), redis={}), "prod")
    return with_busy(found, there, {NAME: answer})


def effects(before: dict[str, Any], after: dict[str, Any], *busy: str) -> list[Effect]:
    """Those by which pods are stopped."""
    return [each for each in effects_on("RayCluster", edited(before, after, Answer(busy))) if each.ended]


AT_ONCE = {"updates": {"strategy": "immediate"}}
BOTH = {**AT_ONCE, "env": {"A": "b"}}
"""An edit of head and workers."""


def test_busy_pods_are_counted_among_all_recreated_pods() -> None:
    all_of_it, workers = effects(ray(**AT_ONCE), ray(**BOTH), "head", "w-1")
    assert (all_of_it.ended, all_of_it.busy) == (Range(4, 4), Range(2, 2))
    assert all_of_it.text.endswith("; busy now: 2 of 4")
    assert (workers.ended, workers.busy) == (Range(3, 3), Range(1, 1))


def test_the_busy_pods_are_a_range_if_only_some_pods_are_deleted() -> None:
    one = {"updates": {"strategy": "none"}, "autoscaling": False}
    [effect] = effects(
        ray(workers={"pool": "a100", "variants": [{"gpus": 8, "minReplicas": 3}]}, **one),
        ray(workers={"pool": "a100", "variants": [{"gpus": 8, "minReplicas": 1}]}, **one),
        "w-0",
        "w-1",
    )
    assert (effect.ended, effect.busy) == (Range(2, 2), Range(1, 2))


def test_an_edit_that_only_stops_idle_pods_stops_no_busy_pod() -> None:
    [effect] = effects(ray(), ray(workers={"pool": "a100", "env": {"A": "b"}, "variants": [{"gpus": 8}]}), "w-0")
    assert effect.busy is None
    assert effect.text.endswith("; busy now: 1 of 3")


def test_busy_pods_are_in_the_table_and_in_the_json_output() -> None:
    impact = edited(ray(**AT_ONCE), ray(**BOTH), Answer(["w-2"]))
    assert report("an edit", impact).tables[0].rows[0][2] == "4, 1 busy"
    assert live.AT_THIS_MOMENT in impact.notes
    stopping = [each for each in as_object(impact)["objects"][0]["effects"] if each["podsEnded"]["most"]]
    assert [each["podsEndedBusy"] for each in stopping] == [{"least": 1, "most": 1}] * 2
    nobody = edited(ray(**AT_ONCE), ray(**BOTH), Answer())
    assert report("an edit", nobody).tables[0].rows[0][2] == "4, 0 busy"


def test_if_ray_cannot_be_asked_busy_is_unknown_with_the_reason() -> None:
    impact = edited(ray(**AT_ONCE), ray(**BOTH), Answer(unknown="its head does not exist"))
    assert report("an edit", impact).tables[0].rows[0][2] == "4, busy: unknown"
    assert any(
        "RayCluster a/training: busy: unknown" in note and "its head does not exist" in note for note in impact.notes
    )
    assert as_object(impact)["objects"][0]["busyUnknown"] == "its head does not exist"


class Played:
    """The pods of a RayCluster whose Ray answers without a pod."""

    asked: list[str]
    states: Mapping[str, str] = {}
    silent: str = ""

    def __init__(self, _cluster: Cluster, namespace: str, cluster: str) -> None:
        self.asked.append(f"{namespace}/{cluster}")

    def ask(self, pods: Iterable[Mapping[str, Any]], drain: Mapping[str, int | None]) -> dict[str, Any]:
        assert not drain
        assert [pod["metadata"]["name"] for pod in pods] == ["head", *WORKERS]
        if self.silent:
            raise UnknownRayError(self.silent)
        return {"nodes": self.states}


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> type[Played]:
    class Here(Played):
        asked: list[str] = []  # noqa: RUF012 -- of this one test

    monkeypatch.setattr(live, "Pods", Here)
    return Here


def test_ray_is_only_asked_if_an_edit_stops_pods(played: type[Played]) -> None:
    played.states = {"head": "IDLE", "w-0": "RUNNING", "w-1": "DRAINING", "w-2": "DEAD"}
    there = running(ray(**AT_ONCE))
    stopping, harmless = (
        impact_on(there, stack(tenant("a", ray(**settings)), redis={}), "prod") for settings in (BOTH, AT_ONCE)
    )
    assert ask(FakeCluster(), stopping, there) == {NAME: Answer(frozenset({"w-0", "w-1"}))}
    assert ask(FakeCluster(), harmless, there) == {}
    assert played.asked == [NAME]


def test_the_reason_for_a_missing_answer_is_kept(played: type[Played]) -> None:
    played.silent = "a command cannot be run in its pod head: Forbidden"
    there = running(ray(**AT_ONCE))
    stopping = impact_on(there, stack(tenant("a", ray(**BOTH)), redis={}), "prod")
    assert ask(FakeCluster(), stopping, there) == {NAME: Answer(unknown=played.silent)}
