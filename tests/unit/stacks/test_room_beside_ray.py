"""Pods and claims beside RayClusters that a tenant's limits or quota would refuse."""

from typing import Any

import pytest

from tests.unit.findings import findings
from tests.unit.stacks.test_programs_of_tenants import NIGHTLY

CLUSTER = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "autoscaling": False}
KEPT = {**CLUSTER, "name": "kept", "faultTolerance": True}


def refused(tenant: dict[str, Any], redis: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """Rules and messages."""
    of_redis = {"redis": {"scope": "perTenant", **redis}} if redis is not None else {}
    found = findings({**of_redis, "tenants": [{"name": "team-a", **tenant}]})
    return [(each.rule, each.message) for each in found]


@pytest.mark.parametrize(
    ("tenant", "redis", "least", "pod"),
    [
        (
            {"jobTemplates": [{**NIGHTLY, "cluster": CLUSTER}]},
            None,
            {"memory": "200Mi"},
            "the pod of job template 'nightly', whose resources are fixed",
        ),
        ({"clusters": [KEPT]}, {}, {"memory": "200Mi"}, "the pods of redis"),
        (
            {"clusters": [KEPT]},
            {"mode": "single", "backup": {}},
            {"cpu": "80m"},
            "the pod of redis.backup, whose resources are fixed",
        ),
    ],
)
def test_limits_apply_to_all_pods_of_the_namespace(
    tenant: dict[str, Any], redis: dict[str, Any] | None, least: dict[str, str], pod: str
) -> None:
    """A CronJob whose pods are refused never runs, and no command reports it."""
    found = refused({"limits": {"min": least}, **tenant}, redis)
    assert {rule for rule, _ in found} == {"within-limits"}
    assert all(message.startswith(f"{pod}: container ") for _, message in found)
    assert not refused({"limits": {"min": {"cpu": "20m", "memory": "32Mi"}}, **tenant}, redis)


def test_the_claim_of_backups_counts_in_the_quota() -> None:
    tenant = {"clusters": [KEPT]}
    [(rule, message)] = refused({"quota": {"storage": "3Gi"}, **tenant}, {"backup": {}})
    assert rule == "quota-fits-clusters"
    assert "start with 8Gi (ray-redis 3Gi, storage ray-redis-backup 5Gi)" in message
    assert not refused({"quota": {"storage": "8Gi"}, **tenant}, {"backup": {}})
