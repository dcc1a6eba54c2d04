"""Edits reach the running pods of a RayCluster, as the stack file configures."""

from typing import Any

import pytest
from kubernetes import client

from kuberay.edits import Verdict
from stacks.commands.impact.comparison import impact_of
from stacks.load import load
from testbed.platform_stack import Rays, Stack, training
from tests.engine.conftest import MakeStack

pytestmark = [pytest.mark.engine, pytest.mark.shared_cluster, pytest.mark.timeout(900)]

NAMESPACE, NAME = "team-a", "training"


@pytest.fixture(scope="module")
def dev(stack_on_operator: MakeStack) -> Stack:
    """A stack with a RayCluster. Each test needs `rolling`."""
    return stack_on_operator("rolling")


@pytest.fixture
def rolling(dev: Stack) -> Stack:
    """The stack after `pulumi up`, with workers of two groups, which an update replaces at once."""
    return dev.settle(two_groups, lambda settings: training(settings).update(updates={"strategy": "immediate"}))


def two_groups(settings: dict[str, Any]) -> None:
    training(settings)["workers"] = {
        "pool": "a100",
        "variants": [{"gpus": 1, "minReplicas": 2}, {"gpus": 2, "minReplicas": 1}],
    }


class Pods:
    """The pods of the RayCluster."""

    def __init__(self, core: client.CoreV1Api) -> None:
        self._core = core

    def live(self) -> dict[str, Any]:
        """The pods by name, without those that are being deleted."""
        listed: Any = self._core.list_namespaced_pod(NAMESPACE, label_selector=f"ray.io/cluster={NAME}")
        return {pod.metadata.name: pod for pod in listed.items if not pod.metadata.deletion_timestamp}

    def names(self, group: str) -> set[str]:
        return {name for name, pod in self.live().items() if pod.metadata.labels["ray.io/group"] == group}

    def variable(self, name: str) -> list[str | None]:
        """The variable's value in each pod's Ray container."""
        return [
            next((each.value for each in pod.spec.containers[0].env if each.name == name), None)
            for pod in self.live().values()
        ]


@pytest.fixture
def pods(core: client.CoreV1Api) -> Pods:
    return Pods(core)


def by_default_a_worker_with_unknown_work_stays(rolling: Stack, pods: Pods) -> None:
    """Pods on simulated nodes have no process that could report whether they are busy."""
    before = set(pods.live())
    rolling.edit(lambda settings: training(settings).update(env={"LEVEL": "1"}, updates={}))
    output = rolling.pulumi("up", "--yes", "--skip-preview").output
    assert "cannot be determined whether they are busy" in output
    assert "the head" in output
    assert set(pods.live()) == before
    rolling.changes_nothing()


def immediate_replaces_all_old_pods(rolling: Stack, pods: Pods) -> None:
    before = set(pods.live())
    rolling.edit(lambda settings: training(settings).update(updates={"strategy": "immediate"}))
    rolling.up()
    assert not before & set(pods.live())
    assert pods.variable("LEVEL") == ["1"] * 4


def test_a_worker_with_unknown_work_stays_unless_the_stack_file_decides(rolling: Stack, pods: Pods) -> None:
    by_default_a_worker_with_unknown_work_stays(rolling, pods)
    immediate_replaces_all_old_pods(rolling, pods)


def an_edit_of_a_mirror_alone_replaces_what_impact_predicts(rolling: Stack, pods: Pods) -> None:
    before, was = set(pods.live()), load(rolling.file)
    rolling.edit(lambda settings: settings.update(images={"mirrors": {"docker.io": "mirror.example"}}))
    [predicted] = [each for each in impact_of(was, load(rolling.file)).objects if each.kind == "RayCluster"]
    assert predicted.verdict == Verdict.RECREATES
    rolling.up()
    assert not before & set(pods.live())
    images = {pod.spec.containers[0].image for pod in pods.live().values()}
    assert {image.partition("/")[0] for image in images} == {"mirror.example"}
    rolling.edit(lambda settings: settings.pop("images"))
    rolling.up()


def an_edit_of_one_group_leaves_the_others_alone(rolling: Stack, pods: Pods) -> None:
    def more_memory(settings: dict[str, Any]) -> None:
        training(settings)["workers"]["variants"][1]["memory"] = "8Gi"

    before = set(pods.live())
    small, large = pods.names("a100-1gpu"), pods.names("a100-2gpu")
    rolling.edit(more_memory)
    rolling.up()
    assert before - set(pods.live()) == large
    assert small <= set(pods.live())


def the_next_up_replaces_a_pod_of_an_older_template(rolling: Stack, pods: Pods, core: client.CoreV1Api) -> None:
    old = next(iter(pods.names("a100-1gpu")))
    core.patch_namespaced_pod(old, NAMESPACE, {"metadata": {"annotations": {"ray-platform/template": "former"}}})
    rolling.up()
    assert old not in pods.live()
    rolling.changes_nothing()


def a_new_group_deletes_no_pod(rolling: Stack, pods: Pods, rays: Rays) -> None:
    before = set(pods.live())
    rolling.edit(lambda settings: training(settings)["workers"]["variants"].append({"gpus": 4, "minReplicas": 1}))
    rolling.up()
    assert before <= set(pods.live())
    assert len(rays.read(NAMESPACE, NAME)["spec"]["workerGroupSpecs"]) == 3


def another_version_of_ray_is_refused_if_the_head_would_stay(rolling: Stack) -> None:
    def newer(settings: dict[str, Any]) -> None:
        training(settings).update(updates={}, rayVersion="2.61.0", image="rayproject/ray:2.61.0")

    original = rolling.file.read_text()
    rolling.edit(newer)
    output = rolling.pulumi("preview", fails=True).output
    assert "workers with Ray 2.61.0 could not join its head" in output
    assert "Traceback" not in output
    rolling.file.write_text(original)


def a_removed_group_is_deleted_after_its_workers(rolling: Stack, pods: Pods, rays: Rays) -> None:
    def groups() -> list[str]:
        return [group["groupName"] for group in rays.read(NAMESPACE, NAME)["spec"]["workerGroupSpecs"]]

    def without(settings: dict[str, Any]) -> None:
        training(settings)["workers"]["variants"].pop()
        training(settings)["updates"] = {}

    before = set(pods.live())
    leaving = pods.names("a100-4gpu")
    rolling.edit(without)
    output = rolling.pulumi("up", "--yes", "--skip-preview", fails=True).output
    assert "worker group a100-4gpu is removed from the stack file, and has workers" in output
    assert "Nothing of the RayCluster was changed" in output
    assert "Traceback" not in output
    assert set(pods.live()) == before
    assert "a100-4gpu" in groups()

    rolling.edit(lambda settings: training(settings).update(updates={"strategy": "immediate"}))
    rolling.up()
    assert groups() == ["a100-1gpu", "a100-2gpu"]
    assert before - set(pods.live()) == leaving


def a_head_that_cannot_start_gets_the_edit_that_corrects_it(rolling: Stack, pods: Pods) -> None:
    """Although this strategy leaves a head alone that runs."""

    def nowhere(settings: dict[str, Any]) -> None:
        selector = {"spec": {"nodeSelector": {"example.com/none": "true"}}}
        training(settings).update(head={"podTemplate": selector}, readyTimeout="5s")

    def corrected(settings: dict[str, Any]) -> None:
        del training(settings)["head"], training(settings)["readyTimeout"]
        training(settings)["updates"] = {}

    rolling.edit(nowhere)
    assert "is not ready after 5 s" in rolling.up(fails=True).output
    (waits,) = pods.names("headgroup")
    rolling.edit(corrected)
    rolling.up()
    assert waits not in pods.live()
    rolling.changes_nothing()


@pytest.mark.thorough
def test_edits_reach_the_pods_that_they_concern(rolling: Stack, pods: Pods, core: client.CoreV1Api, rays: Rays) -> None:
    an_edit_of_a_mirror_alone_replaces_what_impact_predicts(rolling, pods)
    an_edit_of_one_group_leaves_the_others_alone(rolling, pods)
    the_next_up_replaces_a_pod_of_an_older_template(rolling, pods, core)
    a_new_group_deletes_no_pod(rolling, pods, rays)
    another_version_of_ray_is_refused_if_the_head_would_stay(rolling)
    a_removed_group_is_deleted_after_its_workers(rolling, pods, rays)
    a_head_that_cannot_start_gets_the_edit_that_corrects_it(rolling, pods)
