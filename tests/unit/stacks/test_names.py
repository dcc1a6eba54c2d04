"""Names of RayClusters, which KubeRay gives to their Secrets and accounts, too."""

from typing import Any

import pytest

from tests.unit.findings import findings

IDLE = {"idleTerminationOptions": {"timeoutSeconds": 600}}
HISTORY = {
    "storage": [{"name": "records", "storageClass": "shared", "size": "1Gi"}],
    "runHistory": {"storage": "records"},
}


def refused(name: str, other: dict[str, Any], tenant: dict[str, Any], stack: dict[str, Any]) -> list[tuple[str, Any]]:
    """Rules and paths, in the tenant, with a RayCluster of that name beside another one."""
    ray = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "autoscaling": False}
    clusters = [{**ray, "name": name}, {**ray, "name": "other", **other}]
    found = findings({**stack, "tenants": [{"name": "team-a", "clusters": clusters, **tenant}]})
    return [(each.rule, each.path[2:]) for each in found]


@pytest.mark.parametrize(
    ("name", "other", "tenant", "stack"),
    [
        ("ray-redis", {}, {}, {"redis": {}}),
        ("ray-redis-users", {}, {}, {"redis": {"scope": "perTenant"}}),
        ("other-ray-authority", {"tls": {}}, {}, {}),
        ("ray-idle-termination", IDLE, {}, {}),
        ("ray-run-history", {}, HISTORY, {}),
    ],
)
def test_a_cluster_is_not_named_as_a_secret_or_an_account_of_the_stack(
    name: str, other: dict[str, Any], tenant: dict[str, Any], stack: dict[str, Any]
) -> None:
    """Users of the cluster may read the Secret of its name, which would be another."""
    assert refused(name, other, tenant, stack) == [("repeated-name", ("clusters", 0, "name"))]
    assert refused(name, {}, {}, {}) == []


def test_a_cluster_of_another_stack_neither() -> None:
    elsewhere = {"clusterNames": ["ray-redis"]}
    assert refused("training", {}, elsewhere, {"redis": {}}) == [("repeated-name", ("clusterNames", 0))]
