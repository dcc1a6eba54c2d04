"""The effect of an edit on running pods: which KubeRay deletes and creates, and which earlier edits left unchanged."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from components.rollout.templates import ANNOTATION, parts, stamped
from kuberay.edits import Verdict
from kuberay.pods import HEAD, PodChange, change_of_pods, recreates
from stacks.commands.impact.comparison import impact_of, impact_on
from stacks.commands.impact.effects import Effect, Range
from stacks.commands.impact.ray_pods import Known
from stacks.commands.impact.sources import ray_clusters
from tests.engine.ray_edits import ANY_CLUSTER, WITH_SEVERAL_HOSTS, WITHOUT_AUTOSCALER, Edit, Spec, spec
from tests.unit.impact.stacks import effects_on, ray
from tests.unit.planning.stacks import stack, tenant

RUNNING = {HEAD: 1, "small": 2, "big": 1}
EDITS: Mapping[str, Edit] = {**ANY_CLUSTER, **WITHOUT_AUTOSCALER, **WITH_SEVERAL_HOSTS}


def edited(edit: str, before: Spec, after: Spec) -> tuple[Spec, Spec]:
    EDITS[edit](after)
    return before, after


@pytest.mark.parametrize(
    ("edit", "change"),
    [
        ("nothing", PodChange()),
        ("head-image", PodChange()),
        ("suspend", PodChange(deleted=RUNNING)),
        ("group-replicas-up", PodChange(created={"small": 2})),
        ("group-replicas-down", PodChange(deleted={"small": 2})),
        ("group-minReplicas", PodChange(created={"small": 3})),
        ("group-maxReplicas", PodChange(deleted={"small": 1})),
        ("group-suspend", PodChange(deleted={"small": 2})),
        ("group-added", PodChange(created={"new": 1})),
        ("group-removed", PodChange(orphaned={"big": 1})),
        ("group-renamed", PodChange(created={"huge": 1}, orphaned={"big": 1})),
        ("group-numOfHosts", PodChange(created={"small": 4}, orphaned={"small": 2})),
    ],
)
def test_without_an_autoscaler(edit: str, change: PodChange) -> None:
    assert change_of_pods(*edited(edit, spec(), spec()), RUNNING) == change


@pytest.mark.parametrize(
    ("edit", "change"),
    [
        ("group-replicas-down", PodChange()),
        ("group-maxReplicas", PodChange()),
        ("group-minReplicas", PodChange(created={"small": 3})),
    ],
)
def test_with_an_autoscaler_kuberay_deletes_no_worker(edit: str, change: PodChange) -> None:
    assert change_of_pods(*edited(edit, spec(scales=True), spec(scales=True)), RUNNING) == change


@pytest.mark.parametrize(
    ("edit", "change"),
    [
        ("numOfHosts-more", PodChange(deleted={"small": 4}, created={"small": 6})),
        ("numOfHosts-one", PodChange(deleted={"small": 2})),
        ("replicas-up", PodChange(created={"small": 2})),
        ("replicas-down", PodChange(deleted={"small": 2})),
    ],
)
def test_workers_with_several_hosts_are_created_and_deleted_whole(edit: str, change: PodChange) -> None:
    running = {HEAD: 1, "small": 4, "big": 2}
    assert change_of_pods(*edited(edit, spec(hosts=2), spec(hosts=2)), running) == change


LEFT_ALONE = {
    "nothing",
    "upgradeStrategy-on",
    "upgradeStrategy-off",
    "head-pod-tolerations",
    "head-same-quantities",
    "group-replicas-up",
    "group-replicas-down",
    "group-minReplicas",
    "group-maxReplicas",
    "group-pod-tolerations",
}
"""Fields that Recreate ignores. All others delete every pod."""


@pytest.mark.parametrize("edit", ANY_CLUSTER)
def test_recreate_takes_all_pods_for_nearly_everything(edit: str) -> None:
    assert recreates(*edited(edit, spec(recreate=True), spec(recreate=True))) == (edit not in LEFT_ALONE)


def test_recreate_creates_the_desired_number_and_also_deletes_orphans() -> None:
    change = change_of_pods(*edited("group-added", spec(recreate=True), spec(recreate=True)), {**RUNNING, "lost": 3})
    assert change == PodChange({**RUNNING, "lost": 3}, {HEAD: 1, "small": 2, "big": 1, "new": 1}, recreated=True)


def test_a_suspended_ray_cluster_starts_whole() -> None:
    before = spec()
    before["suspend"] = True
    assert change_of_pods(before, spec(), {}) == PodChange(created={HEAD: 1, "small": 2, "big": 1})


WORKERS = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}, {"gpus": 4, "maxReplicas": 2}]}
"""Groups a100-8gpu and a100-4gpu."""


def outdated(strategy: str = "onIdle", **more: Any) -> dict[str, Any]:
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
    assert effects(running(outdated()), outdated("immediate")) == []


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
    [effect] = effects(running(outdated("none"), "a100-8gpu"), outdated(strategy))
    assert (effect.verdict, effect.ended, effect.groups) == (verdict, ended, ("a100-8gpu",))
    assert text in effect.text


def test_with_none_outdated_pods_stay() -> None:
    assert effects(running(outdated(), "a100-8gpu", "headgroup"), outdated("none")) == []


def test_an_old_head_is_deleted_at_once_with_all_workers_unless_they_outlive_it() -> None:
    [all_of_it] = effects(running(outdated(), "headgroup"), outdated("immediate"))
    assert (all_of_it.verdict, all_of_it.ended, all_of_it.groups) == (Verdict.RECREATES, Range(3, 3), ())
    kept: dict[str, Any] = {"faultTolerance": True}
    [alone] = effects(running(outdated(**kept), "headgroup"), outdated("immediate", **kept))
    assert (alone.verdict, alone.ended, alone.groups) == (Verdict.ENDS, Range(1, 1), ("headgroup",))
    assert effects(running(outdated(), "headgroup"), outdated("drain")) == []


def test_an_edit_of_other_pods_ends_them_as_well() -> None:
    more_memory = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}, {"gpus": 4, "memory": "64Gi"}]}
    found = effects(running(outdated("immediate"), "a100-8gpu"), {**outdated("immediate"), "workers": more_memory})
    assert {effect.groups for effect in found if effect.ended} == {("a100-4gpu",), ("a100-8gpu",)}


def test_pods_that_another_effect_ends_are_not_reported_twice() -> None:
    known = running(outdated("immediate"), "a100-8gpu")
    found = effects(known, {**outdated("immediate"), "workers": {**WORKERS, "env": {"A": "b"}}})
    assert [effect.groups for effect in found] == [("a100-8gpu", "a100-4gpu")]


def test_between_two_files_pods_may_be_outdated_if_the_strategy_becomes_immediate() -> None:
    def between(before: str, after: str) -> list[Effect]:
        return effects_on(
            "RayCluster", impact_of(stack(tenant("a", outdated(before))), stack(tenant("a", outdated(after))))
        )

    [effect] = between("onIdle", "immediate")
    assert (effect.verdict, effect.ended) == (Verdict.ENDS, Range(0, 7))
    assert "pods that earlier edits did not reach, 0 to 7 of them" in effect.text
    assert between("immediate", "onIdle") == between("none", "drain") == between("immediate", "immediate") == []
