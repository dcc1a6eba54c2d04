"""What a cluster admin relies on when the operator is provisioned, exists already, or is upgraded.
tests/engine/test_operator_upgrade.py upgrades a real one."""

from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.cluster import Cluster, ClusterUnreachableError, Connection
from components.crds.definitions import content
from components.operator import upgrade
from components.operator.component import KubeRayOperator, KubeRayOperatorArgs
from components.operator.settings import OperatorSettings
from components.operator.upgrade import (
    Live,
    UnsafeUpgradeError,
    check_change,
    check_existing,
    check_hosts,
    check_release,
    live_operator,
    outdated_crds,
)
from core.versions import UnsupportedVersionError
from kuberay.releases import check_ray, groups_with_hosts
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
    assert recorder.outputs["kuberay"] == {"version": "1.6.2", "namespace": "ray-system"}


def test_the_operator_starts_after_its_access_and_upgraded_crds(recorder: Recorder, tree: list[dict[str, Any]]) -> None:
    for first in ("crds", "clusterrolebinding-kuberay-operator", "serviceaccount-kuberay-operator"):
        assert recorder.made_before(f"kuberay-{first}", "kuberay-deployment-kuberay-operator")
    definitions = recorder.registered["kuberay-crds"].inputs["definitions"]
    assert len(definitions) == 4
    crd = next(body for body in tree if body["metadata"]["name"] == "rayclusters.ray.io")
    assert content(definitions["rayclusters.ray.io"]) == crd


def test_the_guard_is_deleted_before_all_that_clusters_need(recorder: Recorder) -> None:
    """The deletion order is reversed: the guard is deleted before CRDs, access and operator."""
    for other in set(recorder.registered) - {"kuberay", "kuberay-crd-guard"}:
        assert recorder.made_before(other, "kuberay-crd-guard")
    inputs = recorder.registered["kuberay-crd-guard"].inputs
    assert sorted(inputs["resources"]) == [
        f"{plural}.v1.ray.io" for plural in ("rayclusters", "raycronjobs", "rayjobs", "rayservices")
    ]
    assert inputs["connection"] == {"context": "staging"}


def test_the_service_does_not_wait_for_pods_that_wait_for_it(recorder: Recorder) -> None:
    """Pulumi waits until a Service has a pod: with the Deployment after it, `up` hung."""
    service, deployment = "kuberay-service-kuberay-operator", "kuberay-deployment-kuberay-operator"
    assert not recorder.made_before(service, deployment)
    assert not recorder.made_before(deployment, service)


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


Tree = list[dict[str, Any]]


def test_a_supported_operator_with_its_own_crds_is_accepted(tree: Tree) -> None:
    crd = next(body for body in tree if body["metadata"]["name"] == "rayclusters.ray.io")
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    live = live_operator(crd, deployment)
    assert live == Live("1.6.2", "1.6", ("v1", "v1alpha1"))
    assert check_existing(live, "ray-system", ["2.60.0"]) == ("1.6.2", None)
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    deployment["metadata"]["labels"]["app.kubernetes.io/version"] = "1.6.1"
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = f"mirror.example/operator@sha256:{'0' * 64}"
    assert live_operator(None, deployment).operator == "1.6.1"


@pytest.mark.parametrize(
    ("version", "gates", "marks"),
    [
        ("1.5.1", "RayClusterStatusConditions=true", False),
        ("1.5.1", "RayMultiHostIndexing=true", True),
        ("1.6.2", "RayClusterStatusConditions=true", True),
        ("1.6.2", "RayMultiHostIndexing=false", False),
        ("1.4.2", "RayClusterStatusConditions=true", False),
    ],
)
def test_whether_the_operator_marks_workers_with_several_hosts_follows_from_its_gates(
    tree: Tree, version: str, gates: str, marks: bool
) -> None:
    deployment = next(body for body in tree if body["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container |= {"image": f"quay.io/kuberay/operator:v{version}", "args": [f"--feature-gates={gates}"]}
    assert live_operator(None, deployment).marks_hosts is marks


def test_an_earlier_release_is_accepted_and_of_a_later_one_a_warning_names_what_is_unknown() -> None:
    assert check_existing(Live("1.5.1", "1.5", ("v1",), marks_hosts=False), "ray-system", ["2.60.0"])[0] == "1.5.1"
    version, warning = check_existing(Live("1.8.1", "1.7", ("v1",)), "ray-system", ["2.60.0"])
    assert version == "1.8.1"
    assert warning
    assert warning.startswith("operator 1.8.1 is later than KubeRay 1.7, the last release known here")
    assert check_existing(Live("1.7.3", "1.7", ("v1",)), "ray-system", ["2.60.0"]) == ("1.7.3", None)


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (Live(None, None), r"operator none, no CRD rayclusters.ray.io.*no Deployment kuberay-operator.*'ray-system'"),
        (Live("1.4.2", None, ("v1",)), r"operator 1.4.2, CRD .* older than 1.5.1 .*operator 1.4.2 is not supported"),
        (Live("1.6.2", None, ("v1",)), r"CRDs are not of the operator's release 1.6: apply those of KubeRay v1.6.2"),
        (Live("1.5.0", None, ("v1",)), r"operator 1.5.0 is not supported"),
        (Live("1.6.2", "1.5", ("v1",)), r"CRDs are not of the operator's release 1.6"),
        (Live("1.7.0", "1.6", ("v1",)), r"CRDs are not of the operator's release 1.7"),
        (Live("1.6.2", "1.6", ("v1alpha1",)), r"does not serve v1"),
        (Live("2.0.0", "1.7", ("v1",)), r"operator 2.0.0 is not supported.*Supported: operator 1.5.1 to 1.7.x"),
    ],
)
def test_an_unsupported_operator_is_refused_with_live_and_supported_versions(there: Live, message: str) -> None:
    with pytest.raises(UnsupportedVersionError, match=message):
        check_existing(there, "ray-system", [])


def test_a_ray_that_the_operator_does_not_support_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"KubeRay 1.6.2 does not support Ray 2.37.0.*2.38.0 or later"):
        check_ray("1.6.2", ["2.60.0", "2.37.0"])


NOTHING = Live(None, None)


def desired(version: str, **settings: Any) -> OperatorSettings:
    return OperatorSettings(version=version, **settings)


@pytest.mark.parametrize(
    ("there", "version"),
    [
        (NOTHING, "1.5.1"),
        (Live("1.5.1", "1.5", ("v1",)), "1.6.2"),
        (Live("1.5.1", "1.6", ("v1",)), "1.6.2"),  # an `up` that was interrupted after the CRDs
        (Live("1.4.2", None, ("v1",)), "1.6.2"),
        (Live("1.6.2", "1.6", ("v1",)), "1.6.0"),
        (Live("1.6.2", "1.6", ("v1",)), "1.7.0"),
    ],
)
def test_an_upgrade_is_allowed(there: Live, version: str) -> None:
    check_release(there, desired(version))


@pytest.mark.parametrize(
    "there",
    [
        Live("1.6.2", "1.6", ("v1",)),
        Live("1.5.1", "1.6", ("v1",)),
        Live(None, "1.6", ("v1",)),
        Live("1.10.0", "1.5", ("v1",)),
    ],
)
def test_a_downgrade_is_refused(there: Live) -> None:
    with pytest.raises(
        UnsafeUpgradeError, match=r"operator.version is 1.5.1, and the cluster has: .* a downgrade.*Keep"
    ):
        check_release(there, desired("1.5.1"))


@pytest.mark.parametrize(
    ("there", "behind"),
    [
        (Live("1.6.2", "1.5", ("v1",)), True),
        (Live("1.6.2", None, ("v1",)), True),
        (Live("1.5.1", "1.6", ("v1",)), False),
        (Live("1.6.2", "1.6", ("v1",)), False),
        (Live("1.4.2", None, ("v1",)), False),
        (Live(None, "1.5", ("v1",)), False),
        (NOTHING, False),
    ],
)
def test_crds_older_than_the_operator_are_reported(there: Live, behind: bool) -> None:
    warning = outdated_crds(there)
    assert (warning is not None) is behind
    assert "run `pulumi refresh`" in (warning or "run `pulumi refresh`")


def test_worker_groups_that_would_be_created_twice_are_named_with_a_fix() -> None:
    live, named = Live("1.5.1", "1.5", ("v1",), marks_hosts=False), [f"team-a/tpu group-{at:02}" for at in range(12)]
    with pytest.raises(UnsafeUpgradeError, match=r"group-00, .*group-09 and 2 more.*RayMultiHostIndexing: false"):
        check_hosts(live, desired("1.6.2"), named)
    check_hosts(live, desired("1.6.2"), [])


@pytest.mark.parametrize(
    ("there", "settings", "looked"),
    [
        (Live("1.5.1", "1.5", ("v1",), marks_hosts=False), {}, True),
        (Live("1.5.1", "1.5", ("v1",), marks_hosts=False), {"feature_gates": {"RayMultiHostIndexing": False}}, False),
        (Live("1.6.2", "1.6", ("v1",)), {}, False),
        (NOTHING, {}, False),
    ],
)
def test_pods_are_read_only_if_the_operator_begins_to_mark_them(
    monkeypatch: pytest.MonkeyPatch, there: Live, settings: dict[str, Any], looked: bool
) -> None:
    asked: list[Cluster] = []
    cluster = FakeCluster()

    def without_marks(cluster: Cluster) -> list[str]:
        asked.append(cluster)
        return []

    monkeypatch.setattr(upgrade, "look", lambda *_: there)
    monkeypatch.setattr(upgrade, "without_marks", without_marks)
    check_change(cluster, desired("1.6.2", **settings))
    assert asked == [cluster] * looked


def test_worker_groups_with_several_hosts_are_recognized() -> None:
    groups = [{"groupName": "tpu", "numOfHosts": 4}, {"groupName": "gpu", "numOfHosts": 1}, {"groupName": "cpu"}]
    assert groups_with_hosts({"spec": {"workerGroupSpecs": groups}}) == ["tpu"]
    assert groups_with_hosts({"spec": {}}) == []
