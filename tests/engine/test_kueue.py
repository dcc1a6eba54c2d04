"""Kueue in the rehearsal: the real manager beside the real operator, as the stack installs it, on simulated nodes."""

import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml
from kubernetes import utils

from local import tools
from local.host_pods.states import read_states
from local.rehearsal import Rehearsal
from testbed.gangs import settled
from testbed.platform_stack import Rays, Stack, existing
from tests.engine.conftest import MakeStack
from tests.engine.people import Judge, Person, account, refusal
from tests.engine.ray_gangs import RayGangs

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

KUEUE, MANAGER = "kueue-system", "kueue-controller-manager"

OBJECTS = ("kueue.x-k8s.io", "v1beta2")

TRAINING = {
    "name": "training",
    "rayVersion": "2.60.0",
    "image": "rayproject/ray:2.60.0",
    "autoscaling": False,
    "workers": {"pool": "a100", "variants": [{"gpus": 8, "minReplicas": 1}]},
}
"""The stack's RayCluster: a head, and one worker with the GPUs of a node."""


def with_kueue(settings: dict[str, Any]) -> None:
    """The dev stack with Kueue, and a team that may have half of the GPUs."""
    # Its pod is Ready at once, and on a busy machine the manager takes longer than 10 s until it listens.
    settings["scheduler"] = {"kueue": {"webhook": {"timeoutSeconds": 30}}}
    tenant = settings["tenants"][0]
    tenant["queue"] = {"capability": {"gpus": 16}}
    tenant["clusters"] = [TRAINING]


class Suspended(RayGangs):
    """RayClusters that wait in a queue of Kueue."""

    queue_label = "kueue.x-k8s.io/queue-name"

    def pending(self, queue: str) -> int:
        """How many wait in a queue."""
        found = self.objects.get_cluster_custom_object(*OBJECTS, "clusterqueues", queue)
        return int(cast("dict[str, Any]", found)["status"]["pendingWorkloads"])

    def why(self, name: str) -> str:
        """What Kueue says of a RayCluster that waits."""
        found = cast("dict[str, Any]", self.objects.list_namespaced_custom_object(*OBJECTS, self.home, "workloads"))
        return str(
            [
                condition["message"]
                for body in found["items"]
                if body["metadata"]["ownerReferences"][0]["name"] == name
                for condition in body.get("status", {}).get("conditions", [])
                if condition["type"] == "QuotaReserved"
            ]
        )


@pytest.fixture(scope="module")
def before(cluster: Rehearsal) -> set[str]:
    """What was in the cluster before."""
    return existing(cluster)


@pytest.fixture(scope="module")
def up(stack: MakeStack, before: set[str]) -> Iterator[Stack]:
    """The stack, up."""
    kueue = stack("kueue")
    kueue.edit(with_kueue)
    kueue.up()
    yield kueue
    kueue.destroy()


@pytest.fixture
def team(up: Stack, cluster: Rehearsal) -> Suspended:
    """The team's namespace."""
    return Suspended(cluster, "team-a")


def test_its_manager_runs_and_has_let_in_the_stacks_raycluster(up: Stack, cluster: Rehearsal, rays: Rays) -> None:
    states = {pod.deployment: pod.state for pod in read_states(cluster.run)}
    assert states[f"{KUEUE}/{MANAGER}"] == "Running"
    assert up.outputs()["scheduler"] == {"name": "kueue", "version": "0.15.0"}
    training = rays.read("team-a", "training")
    assert training["status"]["state"] == "ready"
    assert training["spec"]["suspend"] is False


def test_a_second_up_and_a_refresh_change_nothing(up: Stack) -> None:
    """Kueue lets RayClusters in by `suspend` and by node selectors, and writes its certificate where it is."""
    up.changes_nothing(refreshed=True)


def test_a_gang_waits_for_all_that_it_needs_and_nobody_passes_it(team: Suspended) -> None:
    """8 of 16 GPUs are free: not enough for the elder, and enough for the one behind it."""
    team.start_ray("wide", {8: 2}, "team-a")
    settled(lambda: "insufficient unused quota for nvidia.com/gpu" in team.why("wide"))
    # Kubernetes' times are whole seconds: of two within one second either may be the elder.
    time.sleep(1.0)
    team.start_ray("narrow", {8: 1}, "team-a")
    settled(lambda: team.pending("team-a") == 2)
    assert [team.placed_ray("wide"), team.placed_ray("narrow")] == [[], []]
    team.end_ray("wide")
    settled(lambda: len(team.placed_ray("narrow")) == 2)
    team.end_ray("narrow")


def test_a_namespace_without_a_localqueue_has_nothing_to_wait_in(up: Stack, cluster: Rehearsal) -> None:
    there = Suspended(cluster, "elsewhere")
    utils.create_from_dict(there.api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    there.start_ray("stray", {8: 1}, "team-a")
    settled(lambda: "LocalQueue team-a doesn't exist" in there.why("stray"))
    assert there.placed_ray("stray") == []
    there.end_ray("stray")
    there.core.delete_namespace("elsewhere")
    settled(lambda: "namespace elsewhere" not in existing(cluster))


def greater(settings: dict[str, Any]) -> None:
    """A second RayCluster, for which there is no room beside the first."""
    variants = [{"gpus": 8, "minReplicas": 2}]
    second = {**TRAINING, "name": "greater", "readyTimeout": "5s", "workers": {"pool": "a100", "variants": variants}}
    settings["tenants"][0]["clusters"].append(second)


def test_an_up_that_waits_for_a_queue_says_what_it_waits_for(up: Stack) -> None:
    up.edit(greater)
    said = up.up(fails=True).output
    assert "RayCluster team-a/greater waits in its queue: couldn't assign flavors to pod set" in said
    assert "it waits in its queue: couldn't assign flavors to pod set" in said
    up.edit(with_kueue)
    up.up()


def labelled(settings: dict[str, Any]) -> None:
    """The stack's RayCluster with one label more."""
    settings["tenants"][0]["clusters"][0]["labels"] = {"edited": "yes"}


def test_an_edit_of_a_raycluster_that_was_let_in_names_kueue_which_has_written_to_it(up: Stack) -> None:
    """Kueue writes node selectors into worker groups, and their list is one value to server-side apply."""
    up.edit(labelled)
    said = up.up(fails=True).output
    up.edit(with_kueue)
    assert 'conflict with "kueue" using ray.io/v1: .spec.workerGroupSpecs' in said


def rules_of_the_tree() -> set[tuple[str, str, str, str]]:
    """What Kueue's own ClusterRoles for its manager give: verb, group, resource, name."""
    folder = tools.KUEUE.share("config") / "components" / "rbac"
    roles = [yaml.safe_load((folder / file).read_text()) for file in ("role.yaml", "metrics_auth_role.yaml")]
    return {
        (verb, group, resource, "")
        for role in roles
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.usefixtures("up")
def test_it_may_do_no_more_than_its_tree_says_and_is_denied_nothing(cluster: Rehearsal) -> None:
    judge = Judge(cluster.client())
    given = judge.rules(account(KUEUE, MANAGER), "default") - judge.rules(Person("anybody"), "default")
    assert given
    assert given <= rules_of_the_tree()
    assert "is forbidden" not in (cluster.run / "logs" / f"{MANAGER}.log").read_text()


@pytest.fixture
def manager_down(team: Suspended, cluster: Rehearsal) -> Iterator[None]:
    """Kueue has no pod."""
    name = f"{KUEUE}/{MANAGER}"
    team.apps.patch_namespaced_deployment(MANAGER, KUEUE, {"spec": {"replicas": 0}})
    settled(lambda: name not in [pod.deployment for pod in read_states(cluster.run)])
    yield
    team.apps.patch_namespaced_deployment(MANAGER, KUEUE, {"spec": {"replicas": 1}})
    settled(lambda: [pod.state for pod in read_states(cluster.run) if pod.deployment == name] == ["Running"])


@pytest.mark.usefixtures("manager_down")
def test_while_it_is_down_only_what_names_a_queue_is_refused(team: Suspended, cluster: Rehearsal) -> None:
    said = refusal(lambda: team.start_ray("never", {8: 1}, "team-a"))
    assert "failed calling webhook" in said
    assert "raycluster.kb.io" in said
    team.queue_label = "unqueued"
    team.start_ray("free", {}, "none")
    settled(lambda: len(team.placed_ray("free")) == 1)
    team.end_ray("free")


def test_destroy_leaves_a_queue_that_is_somebody_elses_and_then_nothing(
    up: Stack, team: Suspended, cluster: Rehearsal, before: set[str]
) -> None:
    theirs = {"apiVersion": "/".join(OBJECTS), "kind": "ResourceFlavor", "metadata": {"name": "theirs"}}
    settled(lambda: not refusal(lambda: team.objects.create_cluster_custom_object(*OBJECTS, "resourceflavors", theirs)))
    said = up.pulumi("destroy", "--yes", "--skip-preview", fails=True).output
    assert "Kueue's CRDs are not deleted while there is ResourceFlavor theirs" in said
    team.objects.delete_cluster_custom_object(*OBJECTS, "resourceflavors", "theirs")
    up.destroy()
    settled(lambda: existing(cluster) == before)
