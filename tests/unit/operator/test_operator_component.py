"""What a cluster admin relies on when the operator is provisioned."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError, Connection
from components.crds.definitions import content
from components.operator.component import KubeRayOperator, KubeRayOperatorArgs
from components.operator.settings import OperatorSettings
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record


def provisioned(namespaces: dict[str, pulumi.Input[str]] | None = None, **settings: Any) -> Recorder:
    cluster = FakeCluster(connection=Connection("staging"))
    args = KubeRayOperatorArgs(
        OperatorSettings(location="config/default", **settings), ("2.60.0",), namespaces or {}, cluster
    )
    return record(lambda: KubeRayOperator("kuberay", args))


@pytest.fixture
def recorder(kubectl_that_renders: Path) -> Recorder:
    return provisioned()


def test_each_object_is_a_child_resource_of_the_component(recorder: Recorder) -> None:
    children = [each for each in recorder.registered.values() if each.name != "kuberay"]
    assert len(children) == 10
    assert {each.parent for each in children} == {"kuberay"}
    assert all(each.name.startswith("kuberay-") for each in children)


def test_crds_are_upgraded_before_the_operator(recorder: Recorder) -> None:
    assert len(recorder.registered["kuberay-crds"].inputs["definitions"]) == 4
    assert recorder.made_before("kuberay-crds", "kuberay-deployment-kuberay-operator")


def test_the_operator_starts_with_the_access_it_needs(recorder: Recorder) -> None:
    for access in ("clusterrolebinding-kuberay-operator", "serviceaccount-kuberay-operator"):
        assert recorder.made_before(f"kuberay-{access}", "kuberay-deployment-kuberay-operator")


def test_the_service_does_not_wait_for_pods_that_wait_for_it(recorder: Recorder) -> None:
    """Pulumi waits until a Service has a pod: with the Deployment after it, `up` hung."""
    service, deployment = "kuberay-service-kuberay-operator", "kuberay-deployment-kuberay-operator"
    assert not recorder.made_before(service, deployment)
    assert not recorder.made_before(deployment, service)


def test_the_guard_is_deleted_before_all_that_clusters_need(recorder: Recorder) -> None:
    """The deletion order is reversed: the guard is deleted before CRDs, access and operator."""
    for other in set(recorder.registered) - {"kuberay", "kuberay-crd-guard"}:
        assert recorder.made_before(other, "kuberay-crd-guard")


def test_the_guard_knows_the_kinds_and_the_cluster(recorder: Recorder) -> None:
    inputs = recorder.registered["kuberay-crd-guard"].inputs
    assert sorted(inputs["resources"]) == [
        f"{plural}.v1.ray.io" for plural in ("rayclusters", "raycronjobs", "rayjobs", "rayservices")
    ]
    assert inputs["connection"] == {"context": "staging"}


def test_crds_are_found_by_their_digests_unchanged(recorder: Recorder, tree: list[dict[str, Any]]) -> None:
    crd = next(body for body in tree if body["metadata"]["name"] == "rayclusters.ray.io")
    assert content(recorder.registered["kuberay-crds"].inputs["definitions"]["rayclusters.ray.io"]) == crd


def test_a_role_in_a_watched_namespace_waits_for_it(kubectl_that_renders: Path) -> None:
    def program() -> None:
        made = pulumi.CustomResource("kubernetes:core/v1:Namespace", "team-a", {"kind": "Namespace"})
        args = KubeRayOperatorArgs(
            OperatorSettings(location="config/default", watch_namespaces=("team-a", "team-b")),
            namespaces={"team-a": made.id.apply(lambda _: "team-a")},
        )
        KubeRayOperator("kuberay", args)

    recorder = record(program)
    assert recorder.made_before("team-a", "kuberay-role-team-a-kuberay-operator")
    assert not recorder.made_before("team-a", "kuberay-role-team-b-kuberay-operator")


def test_version_and_namespace_are_outputs(recorder: Recorder) -> None:
    assert recorder.outputs["kuberay"] == {"version": "1.6.2", "namespace": "ray-system"}


@pytest.mark.parametrize(
    ("version", "ray", "message"),
    [("1.6.1", "2.60.0", "is not KubeRay v1.6.1"), ("1.6.2", "2.20.0", "does not support Ray 2.20.0")],
)
def test_a_conflict_ends_the_program_with_one_message(
    kubectl_that_renders: Path, version: str, ray: str, message: str
) -> None:
    args = KubeRayOperatorArgs(OperatorSettings(location="config/default", version=version), (ray,))
    with pytest.raises(pulumi.RunError, match=message):
        record(lambda: KubeRayOperator("kuberay", args))


def test_an_existing_operator_is_read_and_nothing_is_created() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    args = KubeRayOperatorArgs(OperatorSettings(install="existing"), cluster=cluster)
    with pytest.raises(pulumi.RunError, match="no usable kubeconfig"):
        record(lambda: KubeRayOperator("kuberay", args), preview=True)
