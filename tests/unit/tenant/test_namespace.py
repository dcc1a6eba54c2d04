"""The labels and the quota of a tenant's namespace, and what blocks its removal."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError
from components.dynamic.guards import InUseError, TenantGuardProvider, named, refuse_tenant_in_use, runs
from components.tenant.settings import (
    DEFAULT_LIMITS,
    Amounts,
    LimitSettings,
    QuotaSettings,
    limit_range,
    namespace,
    quota,
    resource_quota,
)
from core.nodes import GPU_RESOURCE
from stacks.settings import TenantSettings
from testbed.fake_cluster import FakeCluster


def test_a_namespace_enforces_audits_and_warns_of_the_same_level() -> None:
    labels = namespace("team-a", "team-a", "restricted")["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"
        assert labels[f"pod-security.kubernetes.io/{mode}-version"] == "latest"


def test_pods_must_meet_restricted_by_default() -> None:
    assert TenantSettings(name="team-a").pod_security == "restricted"


def test_a_namespace_has_labels_for_its_owner() -> None:
    body = namespace("research", "team-a", "baseline", "ada", "4711", {"example.com/stage": "test"})
    assert body["metadata"]["name"] == "research"
    own = {key: value for key, value in body["metadata"]["labels"].items() if "pod-security" not in key}
    assert own == {
        "ray-platform/tenant": "team-a",
        "ray-platform/owner": "ada",
        "ray-platform/cost-center": "4711",
        "example.com/stage": "test",
    }


def test_memory_is_counted_by_requests_and_limits_and_cpu_by_requests() -> None:
    hard = resource_quota(QuotaSettings(gpus=16, cpu="200", memory="2Ti", pods=100))["spec"]["hard"]
    assert hard == {
        f"requests.{GPU_RESOURCE}": "16",
        "requests.cpu": "200",
        "requests.memory": "2Ti",
        "limits.memory": "2Ti",
        "pods": "100",
        "services.loadbalancers": "0",
        "services.nodeports": "0",
    }


def test_a_quota_allows_no_external_ports_by_default() -> None:
    hard = resource_quota(QuotaSettings(load_balancers=1, node_ports=5, ray_clusters=3))["spec"]["hard"]
    assert hard == {"services.loadbalancers": "1", "services.nodeports": "5", "count/rayclusters.ray.io": "3"}


def test_all_entries_of_kubernetes_can_be_set() -> None:
    assert resource_quota(QuotaSettings(hard={"count/secrets": "50"}))["spec"]["hard"]["count/secrets"] == "50"


def test_a_quota_of_ray_clusters_is_ready_once_kubernetes_counts_them() -> None:
    """Before that the API server refuses each: "status unknown for quota"."""
    both = resource_quota(QuotaSettings(gpus=8, ray_clusters=3, hard={"count/rayjobs.ray.io": "20"}))
    assert json.loads(both["metadata"]["annotations"]["pulumi.com/waitFor"]) == [
        "jsonpath={.status.used['count/rayclusters.ray.io']}",
        "jsonpath={.status.used['count/rayjobs.ray.io']}",
    ]
    assert "annotations" not in resource_quota(QuotaSettings(gpus=8, hard={"count/secrets": "50"}))["metadata"]


def test_with_a_quota_a_pod_without_amounts_gets_small_ones() -> None:
    assert TenantSettings(name="team-a", quota=QuotaSettings(gpus=1)).limits_in_force == DEFAULT_LIMITS
    limits = limit_range(DEFAULT_LIMITS)
    assert limits is not None
    assert limits["spec"]["limits"] == [
        {"type": "Container", "default": {"memory": "512Mi"}, "defaultRequest": {"cpu": "100m"}}
    ]


def test_without_a_quota_or_with_empty_limits_there_is_no_limit_range() -> None:
    assert TenantSettings(name="team-a").limits_in_force is None
    limits = TenantSettings(name="team-a", quota=QuotaSettings(gpus=1), limits=LimitSettings()).limits_in_force
    assert limits is not None
    assert limit_range(limits) is None


def test_limits_that_kubernetes_would_refuse_are_refused() -> None:
    with pytest.raises(ValueError, match=r"defaultRequest 2Gi is more than max 1Gi"):
        LimitSettings(default_request=Amounts(memory="2Gi"), max=Amounts(memory="1Gi"))


def test_quota_and_limits_exist_only_if_set() -> None:
    assert list(quota(QuotaSettings(gpus=8), DEFAULT_LIMITS)) == ["resource-quota", "limit-range"]
    assert quota(None, None) == {}


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
