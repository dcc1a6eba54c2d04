"""Which pods KubeRay deletes and creates: the effect of an edit of a RayCluster's spec on running pods.

tests/engine/test_impact.py compares the same with the operator.
"""

from collections.abc import Mapping

import pytest

from kuberay.pods import HEAD, PodChange, change_of_pods, recreates
from tests.engine.ray_edits import ANY_CLUSTER, WITH_SEVERAL_HOSTS, WITHOUT_AUTOSCALER, Edit, Spec, spec

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
