"""The objects of queues and their order, the PodGroup of a RayCluster, and what blocks the deletion of a queue."""

from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError
from components.dynamic.guards import InUseError, refuse_queue_in_use
from components.dynamic.pod_group import PodGroupProvider
from components.queues.component import Queues, QueuesArgs
from components.queues.manifests import queue_objects
from stacks.load import parse
from stacks.program.build import build
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record
from tests.unit.queues.tree import POOL, queue

TREE = [queue("vision", "team-a", parent="research"), queue("research"), queue("batch", "team-a", "team-b")]


def made(backend: Any) -> Recorder:
    return record(lambda: Queues("queues", QueuesArgs(list(queue_objects(backend, TREE, [POOL])))))


def test_a_queue_of_volcano_is_created_after_its_parent_and_deleted_before_it() -> None:
    assert made("volcano").made_before("queues-research", "queues-vision")


def test_queues_of_volcano_have_policies_that_restrict_their_use() -> None:
    kinds = made("volcano").kinds()
    assert len(kinds["kubernetes:scheduling.volcano.sh/v1beta1:Queue"]) == 3
    assert kinds["kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding"] == [
        "queues-ray-platform-queues-binding",
        "queues-ray-platform-queues-early-binding",
    ]


def test_a_stack_without_queues_has_no_objects_for_them() -> None:
    assert list(queue_objects("volcano", [])) == []


def test_local_queues_are_in_the_namespaces_of_a_queue_and_wait_for_them() -> None:
    def program() -> None:
        namespace = pulumi.CustomResource("test:Namespace", "namespace", {})
        namespaces = {"team-a": namespace.id.apply(lambda _: "team-a")}
        Queues("queues", QueuesArgs(list(queue_objects("kueue", TREE, [POOL])), namespaces))

    recorder = record(program)
    local = recorder.kinds()["kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue"]
    assert local == ["queues-batch/team-a", "queues-batch/team-b", "queues-vision/team-a"]
    assert recorder.made_before("namespace", "queues-batch/team-a")
    assert recorder.made_before("queues-cohort-research", "queues-vision")
    assert recorder.kinds()["kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"] == ["queues-batch", "queues-vision"]


def test_the_pod_group_is_updated_after_the_labels_of_its_raycluster() -> None:
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "priorityClass": "urgent"}
    tenant = {"name": "team-a", "queue": "research", "clusters": [cluster]}
    stack = parse({"platform": {}, "scheduler": {"volcano": {}}, "tenants": [tenant]})
    recorder = record(lambda: build(stack))
    gang = recorder.registered["team-a/training-pod-group"].inputs
    assert (gang["namespace"], gang["cluster"]) == ("team-a", "training")
    assert (gang["queue"], gang["priorityClass"]) == ("research", "urgent")
    assert recorder.made_before("team-a/training-ray-cluster", "team-a/training-pod-group")


@pytest.mark.parametrize(
    ("changed", "replaced"), [({"queue": "b"}, []), ({"priorityClass": "b"}, []), ({"cluster": "b"}, ["cluster"])]
)
def test_a_changed_queue_or_priority_is_an_update_in_place(changed: dict[str, str], replaced: list[str]) -> None:
    before = {"namespace": "team-a", "cluster": "a", "queue": "a", "priorityClass": "a", "connection": {}}
    diff = PodGroupProvider().diff("", before, before | changed)
    assert diff.changes
    assert diff.replaces == replaced
    assert not PodGroupProvider().diff("", before, dict(before)).changes


LABEL = "volcano.sh/queue-name"


def ray(kind: str, queue: str | None, **parts: Any) -> dict[str, Any]:
    labels = {} if queue is None else {"labels": {LABEL: queue}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": "x", **labels},
        "spec": {},
        **parts,
    }


def refusal(*existing: dict[str, Any]) -> str | None:
    """The refusal of the guard of queue research with these objects; None if it allows the deletion."""
    try:
        refuse_queue_in_use(FakeCluster(*existing), "research", LABEL)
    except InUseError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "there",
    [
        ray("RayCluster", "research"),
        ray("RayCluster", "research", spec={"suspend": True}),
        ray("RayService", "research"),
        ray("RayJob", "research", status={"jobDeploymentStatus": "Running"}),
        ray("RayJob", "research", spec={"suspend": True}, status={"jobDeploymentStatus": "Suspended"}),
    ],
)
def test_a_queue_in_use_is_not_deleted_and_its_users_are_named(there: dict[str, Any]) -> None:
    message = refusal(there)
    assert message is not None
    assert f"queue 'research' is not deleted, because it is used by {there['kind']} team-a/x" in message


@pytest.mark.parametrize(
    "there",
    [
        ray("RayCluster", "other"),
        ray("RayCluster", None),
        ray("RayJob", "research", status={"jobDeploymentStatus": "Complete"}),
    ],
)
def test_other_objects_and_jobs_that_have_ended_do_not_block_the_deletion(there: dict[str, Any]) -> None:
    assert refusal(there) is None


def test_an_unreachable_api_server_blocks_the_deletion() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(InUseError, match="cannot be determined what uses it: no usable kubeconfig"):
        refuse_queue_in_use(cluster, "research", LABEL)
