"""The effects of an edit of a RayCluster's settings on it and its pods, in the words of the report."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from components.payloads.idle_termination import FIELD_MANAGER
from components.rollout.templates import ANNOTATION, parts, stamped
from kuberay.edits import Verdict
from kuberay.pods import PodChange, change_of_pods, recreates
from kuberay.rules import HEAD_GROUP
from stacks.commands.impact.comparison import impact_of, impact_on
from stacks.commands.impact.effects import Effect, Range
from stacks.commands.impact.ray_pods import Known
from stacks.commands.impact.sources import ray_clusters
from tests.engine.ray_edits import ANY_CLUSTER, WITH_SEVERAL_HOSTS, WITHOUT_AUTOSCALER, Edit, Spec, spec
from tests.unit.impact.stacks import EIGHT, effects, effects_on, ray, verdicts
from tests.unit.planning.stacks import cluster, stack, tenant

RECREATE = {"overrides": {"upgradeStrategy": {"type": "Recreate"}}}
BY_KUBERAY_ALONE: dict[str, Any] = {"updates": {"strategy": "none"}}
FOUR = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}, {"gpus": 4, "maxReplicas": 2}]}


def worker_group(replicas: int = 1, groups: tuple[str, ...] = ("cpu",), **settings: Any) -> dict[str, Any]:
    """A RayCluster of CPU groups that does not scale."""
    made = cluster("training", **settings)
    del made["workers"]
    worker_groups = [{"groupName": name, "cpu": 1, "memory": "1Gi", "replicas": replicas} for name in groups]
    return {**made, "workerGroups": worker_groups, "autoscaling": False}


@pytest.mark.parametrize(
    ("before", "after", "verdict", "text"),
    [
        (ray(), ray(labels={"a": "b"}), Verdict.IN_PLACE, "labels.a: changes on the RayCluster"),
        (ray(), ray(idleTimeout="2m"), Verdict.IN_PLACE, "the autoscaler applies the new idle timeout within seconds"),
        (
            ray(),
            ray(env={"A": "b"}, **BY_KUBERAY_ALONE),
            Verdict.NEW_PODS,
            "running workers of group a100-8gpu do not change",
        ),
        (ray(), ray(env={"A": "b"}), Verdict.IGNORED, "the head does not change until its pod is recreated"),
        (ray(), ray(head={"serviceType": "NodePort"}), Verdict.IGNORED, "the head's Service does not change"),
        (ray(), ray(serviceAccount="other"), Verdict.IGNORED, "KubeRay's RoleBinding for the autoscaler keeps"),
        (
            ray(),
            ray(rayVersion="2.59.0", image="rayproject/ray:2.59.0", **BY_KUBERAY_ALONE),
            Verdict.STRANDS,
            "workers that start before have the new version and cannot join",
        ),
        (
            ray(),
            ray(authOptions={"mode": "disabled"}, **BY_KUBERAY_ALONE),
            Verdict.STRANDS,
            "the head refuses them",
        ),
        (ray(), ray(workers=FOUR), Verdict.NOTHING, ""),
        (
            worker_group(),
            worker_group(groups=(), **BY_KUBERAY_ALONE),
            Verdict.ORPHANS,
            "orphans group cpu: 1 pod continue to run with their GPUs, and nothing ends them",
        ),
        (
            ray(),
            ray(workers={"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 1}]}),
            Verdict.ENDS,
            "the autoscaler ends 0 to 3 of 0 to 4 pods of worker group a100-8gpu, first idle pods, then busy ones",
        ),
        (
            worker_group(replicas=3),
            worker_group(replicas=1),
            Verdict.ENDS,
            "deletes 2 of 3 pods of worker group cpu",
        ),
        (worker_group(replicas=1), worker_group(replicas=3), Verdict.CREATES, "creates 2 pods of worker group cpu"),
        (
            ray(),
            {**ray(), "autoscaling": False},
            Verdict.ENDS,
            "deletes 0 to 4 of 0 to 4 pods of worker group a100-8gpu",
        ),
        (ray(), ray(overrides={"suspend": True}), Verdict.ENDS, "deletes 1 of 1 pod of the head"),
        (
            ray(**RECREATE),
            ray(env={"A": "b"}, **RECREATE),
            Verdict.RECREATES,
            "deletes all 1 to 5 pods at once, including the head",
        ),
        (ray(**RECREATE), ray(workers=FOUR, **RECREATE), Verdict.RECREATES, "deletes all 1 to 5 pods at once"),
        (
            ray(**RECREATE),
            ray(workers={"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 3}]}, **RECREATE),
            Verdict.ENDS,
            "the autoscaler ends 0 to 1",
        ),
        (
            ray(faultTolerance=True),
            ray(),
            Verdict.REPLACES,
            "is deleted and recreated: 1 to 5 pods end",
        ),
        (ray(), ray(faultTolerance=True), Verdict.IGNORED, "the head stores its tables in the old place"),
        (ray(), ray(tls={}, **BY_KUBERAY_ALONE), Verdict.STRANDS, "the head keeps the TLS setting"),
        (ray(), cluster("other", workers=EIGHT), Verdict.DELETES, "is deleted, with 1 to 5 pods"),
        (ray(), cluster("other", workers=EIGHT), Verdict.CREATES, "is created, with 1 pod at first"),
    ],
)
def test_an_edit_has_the_expected_effect(
    before: dict[str, Any], after: dict[str, Any], verdict: Verdict, text: str
) -> None:
    found = effects(before, after, redis={})
    if verdict is Verdict.NOTHING:
        assert found == []
    else:
        assert text in " ".join(each.text for each in found if each.verdict is verdict)


ENV = {"env": {"A": "b"}}
NEWER = {"rayVersion": "2.59.0", "image": "rayproject/ray:2.59.0"}
KEPT = {"faultTolerance": True}


@pytest.mark.parametrize(
    ("strategy", "before", "after", "verdict", "text"),
    [
        ("onIdle", ray(), ray(**ENV), Verdict.NEW_PODS, "idle workers of group a100-8gpu are replaced"),
        ("onIdle", ray(), ray(**ENV), Verdict.IGNORED, "the head does not change until its pod is recreated"),
        ("onIdle", ray(), ray(**NEWER), Verdict.REFUSED, "new workers could not join the head"),
        ("onIdle", ray(), ray(tls={}), Verdict.REFUSED, "new workers could not join the head"),
        (
            "onIdle",
            ray(workers=FOUR),
            ray(),
            Verdict.ROLLING,
            "a100-4gpu is removed if its workers, 0 to 2 pods, are idle",
        ),
        ("onIdle", worker_group(), worker_group(groups=()), Verdict.ROLLING, "with the idle workers among its 1 pod"),
        ("drain", ray(), ray(**ENV), Verdict.ROLLING, "ends the rest after 30m, with what runs on them"),
        ("drain", ray(workers=FOUR), ray(), Verdict.ROLLING, "worker group a100-4gpu takes no new work"),
        ("immediate", ray(), ray(**ENV), Verdict.RECREATES, "the head and all workers: 1 to 5 pods deleted at once"),
        ("immediate", ray(**KEPT), ray(**KEPT, **ENV), Verdict.ENDS, "the head: 1 pod deleted at once"),
        ("immediate", ray(**KEPT), ray(**KEPT, **ENV), Verdict.ENDS, "workers of group a100-8gpu: 0 to 4 pods deleted"),
        ("immediate", ray(), ray(**NEWER), Verdict.RECREATES, "the head and all workers"),
        ("immediate", ray(workers=FOUR), ray(), Verdict.ENDS, "ends 0 to 2 pods of worker group a100-4gpu"),
        ("none", ray(workers=FOUR), ray(), Verdict.REFUSED, "worker group a100-4gpu stays while it has workers"),
    ],
)
def test_updates_decide_when_an_edit_reaches_running_pods(
    strategy: str, before: dict[str, Any], after: dict[str, Any], verdict: Verdict, text: str
) -> None:
    found = effects(before, {**after, "updates": {"strategy": strategy}}, redis={})
    assert text in " ".join(each.text for each in found if each.verdict is verdict)


def test_workers_that_are_replaced_at_once_drain_first_if_there_is_a_head_then() -> None:
    at_once = {"updates": {"strategy": "immediate"}}
    drained = "A worker drains first: work that does not end within 40 s is lost"
    _, kept = effects(ray(**KEPT, **at_once), ray(**KEPT, **ENV, **at_once), redis={})
    [alone] = effects(ray(**at_once), ray(**at_once, workers={**WORKERS, **ENV}))
    [live] = effects_on_pods(running(outdated("immediate")), {**outdated("immediate"), "workers": {**WORKERS, **ENV}})
    for each in (kept, alone, live):
        assert ("lost" in each.text, drained in each.reason) == (False, True)
    for each in effects(ray(**at_once), ray(**ENV, **at_once)):
        assert ("lost" in each.text, drained in each.reason) == (True, False)


def test_the_stamp_of_updates_on_templates_is_no_edit() -> None:
    before = stack(tenant("a", ray()))
    body = ray_clusters(before)["a/training"]
    known = Known(stamped(dict(body), None), {"headgroup": 1})
    assert known.body["spec"] != body["spec"]
    assert impact_on({"a/training": known}, before, "prod").objects == ()


def test_with_recreate_only_edits_of_objects_that_outlive_the_pods_are_ignored() -> None:
    found = effects(ray(**RECREATE), ray(env={"A": "b"}, head={"serviceType": "NodePort"}, **RECREATE))
    assert verdicts(found) == {Verdict.RECREATES, Verdict.IGNORED}


def test_every_harm_has_its_reason_and_a_safer_way() -> None:
    suspended = ray(overrides={"suspend": True})
    for after in (
        ray(**RECREATE, env={"A": "b"}),
        ray(tls={}, **BY_KUBERAY_ALONE),
        suspended,
        cluster("other", workers=EIGHT),
    ):
        hurting = [each for each in effects(ray(), after) if each.verdict.hurts]
        assert hurting
        assert all(each.reason and each.safer and each.source for each in hurting)


def test_another_queue_of_kueue_recreates_the_ray_cluster_and_other_containers_wait_again() -> None:
    queues = [{"name": name, "deserved": {"gpus": 8}} for name in ("one", "two")]
    kueue: dict[str, Any] = {"queues": queues, "scheduler": {"kueue": {}}}
    moved = effects(worker_group(queue="one"), worker_group(queue="two"), **kueue)
    assert [each.verdict for each in moved] == [Verdict.REPLACES]
    edited = effects(worker_group(queue="one"), worker_group(queue="one", env={"A": "b"}), **kueue)
    assert [(each.verdict, each.text.endswith("it waits in its queue again")) for each in edited] == [
        (Verdict.RECREATES, True)
    ]
    labelled = effects(worker_group(queue="one"), worker_group(queue="one", labels={"a": "b"}), **kueue)
    assert labelled
    assert Verdict.RECREATES not in {each.verdict for each in labelled}


def test_what_kueue_has_written_is_no_edit() -> None:
    settings = stack(tenant("a", worker_group(queue="one")), queues=[{"name": "one"}], scheduler={"kueue": {}})
    live = copy.deepcopy(dict(ray_clusters(settings)["a/training"]))
    live["spec"]["suspend"] = False
    for group in (live["spec"]["headGroupSpec"], *live["spec"]["workerGroupSpecs"]):
        group["template"]["metadata"] = {"labels": {"kueue.x-k8s.io/podset": "cpu"}}
        group["template"]["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "A100"}
    known = Known(live, {"headgroup": 1, "cpu": 1})
    assert impact_on({"a/training": known}, settings, "prod").objects == ()


def test_pods_that_run_are_counted() -> None:
    before = stack(tenant("a", ray(workers=FOUR)))
    known = Known(ray_clusters(before)["a/training"], {"headgroup": 1, "a100-8gpu": 2, "a100-4gpu": 1})
    gone = impact_on({"a/training": known}, stack(tenant("a", ray())), "prod")
    assert "worker group a100-4gpu is removed if its workers, 1 pod, are idle" in effects_on("RayCluster", gone)[0].text
    assert impact_on({"a/training": known}, before, "prod").objects == ()


def test_an_edit_does_not_wake_a_cluster_that_rests() -> None:
    before = stack(tenant("a", ray()))
    body = ray_clusters(before)["a/training"]
    written = [{"manager": FIELD_MANAGER, "time": "2026-01-01T10:00:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}}]
    metadata = {**body["metadata"], "managedFields": written}
    rests = Known({**body, "metadata": metadata, "spec": {**body["spec"], "suspend": True}}, {})
    woken = Known({**body, "spec": {**body["spec"], "suspend": False}}, {"headgroup": 1})
    for known in (rests, woken):
        assert impact_on({"a/training": known}, before, "prod").objects == ()
    edited = effects_on("RayCluster", impact_on({"a/training": rests}, stack(tenant("a", ray(env={"A": "b"}))), "prod"))
    assert not verdicts(edited) & {Verdict.CREATES, Verdict.ENDS}


def test_resting_ends_no_pod_when_it_is_added() -> None:
    rests = {"idleTerminationOptions": {"timeoutSeconds": 600}}
    found = impact_of(stack(tenant("a", ray())), stack(tenant("a", ray(**rests))))
    assert effects_on("RayCluster", found) == []
    assert {each.kind for each in found.objects if each.verdict.hurts} == set()
    assert "Deployment" in {each.kind for each in found.objects}


def test_a_ray_cluster_that_the_stack_did_not_create_is_ignored() -> None:
    existing = ray_clusters(stack(tenant("a", ray())))["a/training"]
    ours = {
        **existing,
        "metadata": {**existing["metadata"], "managedFields": [{"manager": "pulumi-ray-platform-prod"}]},
    }
    after = stack(tenant("a", cluster("other")))
    found = impact_on({"a/training": Known(existing, {}), "a/mine": Known(ours, {"headgroup": 1})}, after, "prod")
    assert {each.name: each.verdict for each in found.objects} == {
        "a/mine": Verdict.DELETES,
        "a/other": Verdict.CREATES,
    }


def test_another_namespace_is_another_ray_cluster() -> None:
    found = impact_of(stack(tenant("a", ray())), stack(tenant("a", ray(), namespace="b")))
    assert {each.name: each.verdict for each in found.objects if each.kind in ("RayCluster", "Namespace")} == {
        "a/training": Verdict.DELETES,
        "b/training": Verdict.CREATES,
        "a": Verdict.DELETES,
        "b": Verdict.CREATES,
    }


RUNNING = {HEAD_GROUP: 1, "small": 2, "big": 1}
EDITS: Mapping[str, Edit] = {**ANY_CLUSTER, **WITHOUT_AUTOSCALER, **WITH_SEVERAL_HOSTS}


def edited(edit: str, before: Spec, after: Spec) -> tuple[Spec, Spec]:
    EDITS[edit](after)
    return before, after


@pytest.mark.parametrize(
    ("edit", "scales", "change"),
    [
        ("nothing", False, PodChange()),
        ("head-image", False, PodChange()),
        ("suspend", False, PodChange(deleted=RUNNING)),
        ("group-replicas-up", False, PodChange(created={"small": 2})),
        ("group-replicas-down", False, PodChange(deleted={"small": 2})),
        ("group-minReplicas", False, PodChange(created={"small": 3})),
        ("group-maxReplicas", False, PodChange(deleted={"small": 1})),
        ("group-suspend", False, PodChange(deleted={"small": 2})),
        ("group-added", False, PodChange(created={"new": 1})),
        ("group-removed", False, PodChange(orphaned={"big": 1})),
        ("group-renamed", False, PodChange(created={"huge": 1}, orphaned={"big": 1})),
        ("group-numOfHosts", False, PodChange(created={"small": 4}, orphaned={"small": 2})),
        ("group-replicas-down", True, PodChange()),
        ("group-maxReplicas", True, PodChange()),
        ("group-minReplicas", True, PodChange(created={"small": 3})),
    ],
)
def test_with_an_autoscaler_kuberay_deletes_no_worker(edit: str, scales: bool, change: PodChange) -> None:
    assert change_of_pods(*edited(edit, spec(scales=scales), spec(scales=scales)), RUNNING) == change


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
    running = {HEAD_GROUP: 1, "small": 4, "big": 2}
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


def test_recreate_creates_the_desired_number_and_a_suspended_ray_cluster_starts_whole() -> None:
    change = change_of_pods(*edited("group-added", spec(recreate=True), spec(recreate=True)), {**RUNNING, "lost": 3})
    assert change == PodChange({**RUNNING, "lost": 3}, {HEAD_GROUP: 1, "small": 2, "big": 1, "new": 1}, recreated=True)
    before = spec()
    before["suspend"] = True
    assert change_of_pods(before, spec(), {}) == PodChange(created={HEAD_GROUP: 1, "small": 2, "big": 1})


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


def effects_on_pods(known: Known, after: dict[str, Any]) -> list[Effect]:
    return effects_on("RayCluster", impact_on({"a/training": known}, stack(tenant("a", after), redis={}), "prod"))


def test_pods_that_match_the_ray_cluster_and_with_none_outdated_ones_stay() -> None:
    assert effects_on_pods(running(outdated()), outdated("immediate")) == []
    assert effects_on_pods(running(outdated(), "a100-8gpu", "headgroup"), outdated("none")) == []


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
    [effect] = effects_on_pods(running(outdated("none"), "a100-8gpu"), outdated(strategy))
    assert (effect.verdict, effect.ended, effect.groups) == (verdict, ended, ("a100-8gpu",))
    assert text in effect.text


def test_an_old_head_is_deleted_at_once_with_all_workers_unless_they_outlive_it() -> None:
    [all_of_it] = effects_on_pods(running(outdated(), "headgroup"), outdated("immediate"))
    assert (all_of_it.verdict, all_of_it.ended, all_of_it.groups) == (Verdict.RECREATES, Range(3, 3), ())
    kept: dict[str, Any] = {"faultTolerance": True}
    [alone] = effects_on_pods(running(outdated(**kept), "headgroup"), outdated("immediate", **kept))
    assert (alone.verdict, alone.ended, alone.groups) == (Verdict.ENDS, Range(1, 1), ("headgroup",))
    assert effects_on_pods(running(outdated(), "headgroup"), outdated("drain")) == []


def test_an_edit_of_other_pods_ends_them_as_well() -> None:
    more_memory = {"pool": "a100", "variants": [{"gpus": 8, "maxReplicas": 4}, {"gpus": 4, "memory": "64Gi"}]}
    found = effects_on_pods(
        running(outdated("immediate"), "a100-8gpu"), {**outdated("immediate"), "workers": more_memory}
    )
    assert {effect.groups for effect in found if effect.ended} == {("a100-4gpu",), ("a100-8gpu",)}


def test_pods_that_another_effect_ends_are_not_reported_twice() -> None:
    known = running(outdated("immediate"), "a100-8gpu")
    found = effects_on_pods(known, {**outdated("immediate"), "workers": {**WORKERS, "env": {"A": "b"}}})
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
