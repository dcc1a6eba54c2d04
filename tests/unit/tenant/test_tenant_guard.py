"""What blocks the removal of a tenant."""

from collections.abc import Mapping
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.dynamic.guards import InUseError, TenantGuardProvider, named, refuse_tenant_in_use, runs
from testbed.fake_cluster import FakeCluster


def ray(kind: str, name: str = "x", **parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": name},
        "spec": {},
        **parts,
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (ray("RayCluster"), True),
        (ray("RayCluster", spec={"suspend": True}), False),
        (ray("RayService"), True),
        (ray("RayCronJob"), True),
        (ray("RayCronJob", spec={"suspend": True}), False),
        (ray("RayJob"), True),
        (ray("RayJob", status={"jobDeploymentStatus": "Running"}), True),
        (ray("RayJob", status={"jobDeploymentStatus": "Retrying"}), True),
        (ray("RayJob", status={"jobDeploymentStatus": "Complete"}), False),
        (ray("RayJob", status={"jobDeploymentStatus": "Failed"}), False),
    ],
)
def test_an_object_with_present_or_future_pods_counts_as_running(body: Mapping[str, Any], expected: bool) -> None:
    assert runs(body) == expected


def refusal(*existing: dict[str, Any]) -> str | None:
    """The refusal of the guard of team-a with these objects; None if it allows the removal."""
    try:
        refuse_tenant_in_use(FakeCluster(*existing), "team-a", "team-a")
    except InUseError as error:
        return str(error)
    return None


def test_running_objects_are_named_with_a_fix() -> None:
    message = refusal(ray("RayCluster", "training"), ray("RayJob", "nightly"))
    assert message is not None
    assert "while there is RayCluster team-a/training, RayJob team-a/nightly" in message
    assert "allowDelete: true" in message


def test_a_tenant_without_running_objects_is_removed() -> None:
    assert refusal() is None
    assert refusal(ray("RayCluster", spec={"suspend": True})) is None


def test_a_tenant_with_retained_storage_is_not_removed_even_with_allow_delete() -> None:
    props = {"tenant": "team-a", "namespace": "team-a", "allowDelete": True, "storage": ["models", "results"]}
    with pytest.raises(InUseError, match="storage models, results would be deleted with its namespace"):
        TenantGuardProvider().refuse(props)
    released = {key: value for key, value in props.items() if key != "storage"}
    TenantGuardProvider().refuse(released)
    assert TenantGuardProvider().diff("guard", props, released).changes
    assert not TenantGuardProvider().diff("guard", props, props).changes


def test_an_unreachable_api_server_blocks_the_deletion() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    with pytest.raises(InUseError, match="cannot be determined what runs in its namespace: no usable kubeconfig"):
        refuse_tenant_in_use(cluster, "team-a", "team-a")


def test_a_long_list_is_cut() -> None:
    assert named([ray("RayCluster", str(number)) for number in range(12)]).endswith("team-a/9 and 2 more")
