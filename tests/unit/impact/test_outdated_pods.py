"""Pods that earlier edits left unchanged: a later edit, even of `updates` alone, may end them."""

from collections import Counter
from typing import Any

import pytest

from components.rollout.templates import ANNOTATION, parts, stamped
from kuberay.edits import Verdict
from stacks.commands.impact.comparison import impact_of, impact_on
from stacks.commands.impact.effects import Effect, Range
from stacks.commands.impact.ray_pods import Known
from stacks.commands.impact.sources import ray_clusters
from tests.unit.impact.stacks import effects_on, ray
from tests.unit.planning.stacks import stack, tenant

WORKERS = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}, {"gpus": 4, "maxReplicas": 2}]}
"""Groups a100-8gpu and a100-4gpu."""


def edited(strategy: str = "onIdle", **more: Any) -> dict[str, Any]:
    return ray(workers=WORKERS, updates={"strategy": strategy}, **more)


def running(cluster: dict[str, Any], *old: str) -> Known:
    """The RayCluster with a head and a worker of each group; those of groups in `old` are from before an edit."""
    body = stamped(dict(ray_clusters(stack(tenant("a", cluster), redis={}))["a/training"]), None)
    marks = parts(body["spec"])
    stamps = {"headgroup": marks["head"]["stamp"], **{name: each["stamp"] for name, each in marks["groups"].items()}}
    pods = [
        {
            "metadata": {
                "name": name,
                "labels": {"ray.io/node-type": "head" if name == "headgroup" else "worker", "ray.io/group": name},
                "annotations": {ANNOTATION: "former" if name in old else stamp},
            }
        }
        for name, stamp in stamps.items()
    ]
    return Known(body, Counter(list(stamps)), pods=pods)


def effects(known: Known, after: dict[str, Any]) -> list[Effect]:
    return effects_on("RayCluster", impact_on({"a/training": known}, stack(tenant("a", after), redis={}), "prod"))


def test_pods_that_match_the_ray_cluster_have_no_effect() -> None:
    assert effects(running(edited()), edited("immediate")) == []


@pytest.mark.parametrize(
    ("strategy", "verdict", "text", "ended"),
    [
        ("immediate", Verdict.ENDS, "1 pod of worker group a100-8gpu: deleted at once", Range(1, 1)),
        ("drain", Verdict.ROLLING, "ended after 30m", Range(0, 1)),
        ("onIdle", Verdict.NEW_PODS, "replaced if idle", Range(0, 1)),
    ],
)
def test_another_strategy_alone_reaches_outdated_workers(
    strategy: str, verdict: Verdict, text: str, ended: Range
) -> None:
    [effect] = effects(running(edited("none"), "a100-8gpu"), edited(strategy))
    assert (effect.verdict, effect.ended, effect.groups) == (verdict, ended, ("a100-8gpu",))
    assert text in effect.text


def test_with_none_outdated_pods_stay() -> None:
    assert effects(running(edited(), "a100-8gpu", "headgroup"), edited("none")) == []


def test_an_old_head_is_deleted_at_once_with_all_workers_unless_they_outlive_it() -> None:
    [all_of_it] = effects(running(edited(), "headgroup"), edited("immediate"))
    assert (all_of_it.verdict, all_of_it.ended, all_of_it.groups) == (Verdict.RECREATES, Range(3, 3), ())
    kept: dict[str, Any] = {"faultTolerance": True}
    [alone] = effects(running(edited(**kept), "headgroup"), edited("immediate", **kept))
    assert (alone.verdict, alone.ended, alone.groups) == (Verdict.ENDS, Range(1, 1), ("headgroup",))
    assert effects(running(edited(), "headgroup"), edited("drain")) == []


def test_an_edit_of_other_pods_ends_them_as_well() -> None:
    more_memory = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}, {"gpus": 4, "memory": "64Gi"}]}
    found = effects(running(edited("immediate"), "a100-8gpu"), {**edited("immediate"), "workers": more_memory})
    assert {effect.groups for effect in found if effect.ended} == {("a100-4gpu",), ("a100-8gpu",)}


def test_pods_that_another_effect_ends_are_not_reported_twice() -> None:
    known = running(edited("immediate"), "a100-8gpu")
    found = effects(known, {**edited("immediate"), "workers": {**WORKERS, "env": {"A": "b"}}})
    assert [effect.groups for effect in found] == [("a100-8gpu", "a100-4gpu")]


def test_between_two_files_pods_may_be_outdated_if_the_strategy_becomes_immediate() -> None:
    def between(before: str, after: str) -> list[Effect]:
        return effects_on(
            "RayCluster", impact_of(stack(tenant("a", edited(before))), stack(tenant("a", edited(after))))
        )

    [effect] = between("onIdle", "immediate")
    assert (effect.verdict, effect.ended) == (Verdict.ENDS, Range(0, 7))
    assert "pods that earlier edits did not reach, 0 to 7 of them" in effect.text
    assert between("immediate", "onIdle") == between("none", "drain") == between("immediate", "immediate") == []
