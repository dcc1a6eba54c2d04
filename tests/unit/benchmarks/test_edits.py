"""The random edits: which edits are drawn, and how their outcome is compared with `impact`."""

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import pytest

from core.problems import StackFileError
from kuberay.edits import Verdict
from stacks.commands.impact.comparison import Impact, impact_of
from stacks.commands.impact.effects import Effect, ObjectImpact, Range
from stacks.commands.impact.ray_pods import Known
from testbed.edits.autoscalers import Worker
from testbed.edits.drawn import CHANGES, Cluster, edited, first, scales, seeded, strategy, wrong
from testbed.edits.outcome import gone, set_back, switched_off, unpredicted
from tests.unit.planning.stacks import stack, tenant

BUSY = Worker("a/training", "one", "training-one-x")


def sequence(seed: int) -> Iterator[Cluster]:
    draw = seeded(seed)
    cluster = first(draw, "training")
    while True:
        yield cluster
        cluster = edited(draw, cluster).cluster


def running(*pods: str, **groups: int) -> dict[str, Known]:
    """The RayCluster with these pods and replicas."""
    existing: list[dict[str, Any]] = [{"metadata": {"name": name}} for name in pods]
    specs = [{"groupName": name, "replicas": number} for name, number in groups.items()]
    spec = {"enableInTreeAutoscaling": True, "workerGroupSpecs": specs}
    return {BUSY.cluster: Known({"spec": spec}, pods=existing)}


def test_a_seed_always_draws_the_same_edits_and_another_seed_draws_others() -> None:
    assert list(islice(sequence(1), 5)) == list(islice(sequence(1), 5))
    assert list(islice(sequence(1), 5)) != list(islice(sequence(2), 5))


@pytest.mark.parametrize("seed", range(12))
def test_each_step_is_another_valid_ray_cluster(seed: int) -> None:
    steps = list(islice(sequence(seed), 6))
    for before, after in pairwise(steps):
        assert after != before
        impact_of(stack(tenant("a", before)), stack(tenant("a", after)))


def test_all_kinds_of_edits_are_drawn() -> None:
    draw = seeded(0)
    whats = {part for _ in range(300) for part in edited(draw, first(draw, "training")).what.split(" and ")}
    assert len(whats) == len(CHANGES)
    found = [step for seed in range(40) for step in islice(sequence(seed), 5)]
    assert {strategy(step) for step in found} == {"onIdle", "drain", "immediate", "none"}
    assert {scales(step) for step in found} == {True, False}


@pytest.mark.parametrize("seed", range(24))
def test_an_invalid_edit_is_refused(seed: int) -> None:
    draw = seeded(seed)
    before = first(draw, "training")
    edit = wrong(draw, before)
    if edit.what == "another ray":
        assert {effect.verdict for effect in _effects(before, edit.cluster)} >= {Verdict.REFUSED}
    else:
        with pytest.raises(StackFileError):
            stack(tenant("a", edit.cluster))


def _effects(before: Cluster, after: Cluster) -> list[Effect]:
    impact = impact_of(stack(tenant("a", before)), stack(tenant("a", after)))
    return [effect for each in impact.objects if each.kind == "RayCluster" for effect in each.effects]


def test_a_busy_worker_is_lost_if_its_pod_is_deleted_but_not_by_its_autoscaler() -> None:
    assert gone([BUSY], [], running()) == {BUSY}
    assert gone([BUSY], [BUSY.pod], running()) == set()
    assert gone([BUSY], [], running(BUSY.pod)) == set()


@pytest.mark.parametrize(
    ("effect", "named"),
    [
        (Effect(Verdict.ENDS, "", ended=Range(1, 1), groups=("one",)), True),
        (Effect(Verdict.ENDS, "", ended=Range(1, 1), groups=("two",)), False),
        (Effect(Verdict.RECREATES, "", ended=Range(3, 3)), True),
        (Effect(Verdict.NEW_PODS, "", ended=Range(0, 1), groups=("one",)), False),
        (Effect(Verdict.ORPHANS, "", groups=("one",)), False),
    ],
)
def test_a_loss_was_predicted_if_impact_ends_busy_pods_of_the_group(effect: Effect, named: bool) -> None:
    impact = Impact((ObjectImpact("RayCluster", BUSY.cluster, (effect,)),))
    assert unpredicted([BUSY], impact) == (set() if named else {BUSY})


def test_a_number_is_reported_as_set_back_if_it_differs_from_the_autoscalers() -> None:
    scaled = {(BUSY.cluster, "one"): 3, (BUSY.cluster, "gone"): 2, ("a/removed", "one"): 1}
    assert set_back(scaled, running(one=3)) == []
    [(cluster, group, sentence)] = set_back(scaled, running(one=1))
    assert (cluster, group) == (BUSY.cluster, "one")
    assert sentence == "a/training one: 1 where its autoscaler had set 3"


def test_an_autoscaler_may_scale_before_the_edit_that_switches_it_off() -> None:
    scales, rests = running(one=1), running(one=1)
    del rests[BUSY.cluster].body["spec"]["enableInTreeAutoscaling"]
    assert switched_off(scales, rests, {BUSY.cluster, "a/removed"}) == {BUSY.cluster}
    assert switched_off(scales, rests, set()) == set()
    assert switched_off(scales, scales, {BUSY.cluster}) == set()
