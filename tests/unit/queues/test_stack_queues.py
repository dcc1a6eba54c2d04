"""The queues of a stack, their users, and the queue of each RayCluster."""

from typing import Any

import pytest

from components.ray_cluster.manifests import NO_SCHEDULING, Scheduling
from stacks.load import parse
from stacks.objects.queues import queues_of, scheduling_of, usable
from stacks.settings import StackSettings
from tests.unit.findings import findings


def cluster(name: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **settings}


def stack(*tenants: dict[str, Any], queues: list[dict[str, Any]] | None = None) -> StackSettings:
    return parse({"scheduler": {"volcano": {}}, "queues": queues or [], "tenants": list(tenants)})


def allowed(settings: StackSettings) -> dict[str, tuple[str, ...]]:
    """The namespaces of each queue."""
    return {queue.name: queue.namespaces for queue in queues_of(settings)}


def test_a_shared_queue_is_for_tenants_that_name_it_or_whose_clusters_name_it() -> None:
    settings = stack(
        {"name": "team-a", "queue": "research"},
        {"name": "team-b", "namespace": "b", "clusters": [cluster("tuning", queue="research")]},
        {"name": "team-c"},
        queues=[{"name": "research"}, {"name": "batch"}],
    )
    assert allowed(settings) == {"research": ("team-a", "b"), "batch": ()}


def test_a_configured_list_of_namespaces_is_used_unchanged() -> None:
    settings = stack(
        {"name": "team-a", "queue": "research"}, queues=[{"name": "research", "allowedNamespaces": ["team-a", "other"]}]
    )
    assert allowed(settings) == {"research": ("team-a", "other")}


def test_a_tenants_own_queue_has_the_name_of_its_namespace_and_is_only_for_it() -> None:
    assert allowed(stack({"name": "team-a", "namespace": "research", "queue": {}})) == {"research": ("research",)}


def test_a_clusters_own_queue_overrides_its_tenants() -> None:
    settings = stack(
        {"name": "team-a", "queue": {}, "clusters": [cluster("here"), cluster("there", queue="batch")]},
        {"name": "team-b", "clusters": [cluster("nowhere")]},
        queues=[{"name": "batch"}],
    )
    waiting = {
        each.name: scheduling_of(settings, tenant, each) for tenant in settings.tenants for each in tenant.clusters
    }
    assert waiting == {
        "here": Scheduling("volcano", "team-a"),
        "there": Scheduling("volcano", "batch"),
        "nowhere": Scheduling("volcano", None),
    }
    alone = parse({"tenants": [{"name": "team-a", "clusters": [cluster("here")]}]})
    assert scheduling_of(alone, alone.tenants[0], alone.tenants[0].clusters[0]) == NO_SCHEDULING


def test_rayclusters_cannot_wait_in_parents() -> None:
    settings = stack(
        {"name": "team-a", "queue": "vision"},
        queues=[
            {"name": "research", "allowedNamespaces": ["team-a"]},
            {"name": "vision", "parent": "research"},
        ],
    )
    assert usable(settings, settings.tenants[0]) == ["vision"]


@pytest.mark.parametrize(
    ("resource", "scheduler", "rules"),
    [
        ("ephemeral-storage", {"kueue": {}}, ["not-with-kueue"]),
        ("amd.com/gpu", {"kueue": {}}, ["not-with-kueue"]),
        # It may be configured to leave some resources out of account.
        ("ephemeral-storage", {"kueue": {"install": "existing"}}, []),
        ("ephemeral-storage", {"volcano": {}}, []),
    ],
)
def test_queues_of_kueue_have_no_other_resources(resource: str, scheduler: dict[str, Any], rules: list[str]) -> None:
    """Kueue never admits a RayCluster whose pods request them."""
    container = {"name": "ray-worker", "resources": {"limits": {resource: "1"}}}
    group = {"groupName": "large", "cpu": 1, "memory": "1Gi", "replicas": 1}
    group["podTemplate"] = {"spec": {"containers": [container]}}
    tenant = {"name": "team-a", "queue": {}, "clusters": [cluster("a", autoscaling=False, workerGroups=[group])]}
    nodes = [{"pool": "cpu", "count": 1, "cpu": 32, "memory": "128Gi"}]
    found = findings({"nodes": nodes, "scheduler": scheduler, "tenants": [tenant]})
    assert [each.rule for each in found] == rules
    assert all("workerGroups" in each.path for each in found)
