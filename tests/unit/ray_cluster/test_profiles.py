"""What a user relies on when nodes are divided into workers by a profile other than the default."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.rules import valid
from components.ray_cluster.settings import Budget, RayClusterSettings, Reserve, Variant, WorkersSettings
from components.ray_cluster.worker_groups import WorkerGroup, tiling, worker_groups
from core.nodes import NodePool
from core.quantities import amount
from stacks.objects.ray_clusters import with_tenant_defaults
from stacks.settings import TenantSettings

A100 = NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8)
CPU = NodePool(pool="cpu", count=3, cpu="32", memory="128Gi")


def caps(pool: NodePool, **settings: Any) -> dict[int, int | None]:
    """The maximum workers by GPUs."""
    workers = WorkersSettings.model_validate({"pool": pool.pool, "profile": "tiling", **settings})
    return {group.gpus: group.max_replicas for group in worker_groups(pool, workers)}


@pytest.mark.parametrize(
    ("gpus", "sizes"),
    [(8, (1, 2, 4, 8)), (6, (1, 2, 3, 6)), (4, (1, 2, 4)), (1, (1,)), (0, (0,)), (16, (1, 2, 4, 8, 16))],
)
def test_each_size_fills_a_node_without_rest(gpus: int, sizes: tuple[int, ...]) -> None:
    assert tiling(gpus) == sizes


@st.composite
def nodes_with_workers(draw: st.DrawFn) -> tuple[NodePool, Reserve, list[WorkerGroup]]:
    """A node, its reserve, and workers that fit on it by GPUs, of derived sizes or of any."""
    gpus = draw(st.integers(1, 16))
    cpu, memory = draw(st.integers(2 * gpus, 512)), draw(st.integers(2 * gpus, 4096))
    pool = NodePool(pool="p", count=3, cpu=str(cpu), memory=f"{memory}Gi", gpus=gpus)
    reserve = Reserve(cpu=str(draw(st.integers(0, cpu - gpus))), memory=f"{draw(st.integers(0, memory - gpus))}Gi")
    profile = draw(st.sampled_from(["tiling", "doubling"]))
    any_size = st.lists(st.integers(1, gpus), min_size=1, max_size=6, unique=True)
    variants = draw(st.none() | any_size.map(lambda sizes: tuple(Variant(gpus=size) for size in sizes)))
    workers = WorkersSettings(pool="p", profile=profile, reserve=reserve, variants=variants)
    groups = worker_groups(pool, workers)
    chosen: list[WorkerGroup] = []
    for group in draw(st.lists(st.sampled_from(groups), min_size=1, max_size=gpus)):
        if group.gpus + sum(each.gpus for each in chosen) <= gpus:
            chosen.append(group)
    return pool, reserve, chosen


@given(nodes_with_workers())
def test_workers_that_fit_by_gpus_fit_by_cpus_and_memory_beside_the_reserve(
    case: tuple[NodePool, Reserve, list[WorkerGroup]],
) -> None:
    pool, reserve, workers = case
    for resource in ("cpu", "memory"):
        taken = sum((amount(str(getattr(each, resource))) for each in workers), Decimal(0))
        assert taken + amount(str(getattr(reserve, resource))) <= amount(str(getattr(pool, resource)))


@pytest.mark.parametrize("gpus", [3, 6])
def test_a_whole_share_is_not_rounded_down(gpus: int) -> None:
    pool = NodePool(pool="p", count=1, cpu="48", memory="480Gi", gpus=gpus)
    workers = WorkersSettings(pool="p", profile="tiling", reserve=Reserve(cpu="0", memory="0"))
    first = worker_groups(pool, workers)[0]
    assert (first.cpu, first.memory) == (str(48 // gpus), f"{480 // gpus}Gi")


def test_each_size_has_as_many_workers_as_fit_on_the_pools_nodes() -> None:
    assert caps(A100) == {1: 32, 2: 16, 4: 8, 8: 4}
    assert caps(CPU) == {0: 3}


def test_configured_sizes_have_as_many_workers_as_fit_by_default() -> None:
    assert caps(A100, variants=[{"gpus": 3}, {"gpus": 1, "maxReplicas": 5}]) == {3: 8, 1: 5}


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ({"gpus": 12}, {1: 12, 2: 6, 4: 3, 8: 1}),
        ({"gpus": 4}, {1: 4, 2: 2, 4: 1, 8: 0}),
        ({"cpu": 60}, {1: 8, 2: 4, 4: 2, 8: 1}),
        ({"memory": "500Gi"}, {1: 4, 2: 2, 4: 1, 8: 0}),
        ({"gpus": 1000}, {1: 32, 2: 16, 4: 8, 8: 4}),
    ],
)
def test_a_budget_limits_each_size(budget: dict[str, Any], expected: dict[int, int]) -> None:
    assert caps(A100, budget=budget) == expected


def test_a_budget_limits_workers_without_gpus() -> None:
    assert caps(CPU, budget={"gpus": 0, "cpu": 60}) == {0: 2}


def given_to(profile: str, budget: Budget | None = None, **tenant: Any) -> Budget:
    """The budget of a cluster's workers, including its tenant's limits."""
    cluster = RayClusterSettings(
        name="training",
        ray_version="2.60.0",
        image="rayproject/ray:2.60.0",
        workers=(WorkersSettings.model_validate({"pool": "a100", "profile": profile, "budget": budget or Budget()}),),
    )
    settings = TenantSettings.model_validate({"name": "team-a", **tenant})
    return with_tenant_defaults(settings, with_tenant_defaults(settings, cluster)).workers[0].budget


def test_the_default_budget_is_that_of_quota_and_own_queue() -> None:
    tenant: dict[str, Any] = {"quota": {"gpus": 24, "cpu": 100}, "queue": {"capability": {"gpus": 16, "memory": "2Ti"}}}
    assert given_to("tiling", **tenant) == Budget(gpus=16, cpu="100", memory=str(2 * 2**40))
    assert given_to("tiling", Budget(gpus=32), **tenant).gpus == 32
    assert given_to("doubling", **tenant) == Budget()


def test_a_shared_queue_does_not_limit_a_single_tenant() -> None:
    assert given_to("tiling", queue="shared") == Budget()


def test_ados_figures_result_for_the_node_in_its_guide() -> None:
    guide = yaml.safe_load((Path(__file__).parent / "four_nodes_of_eight_a100.yaml").read_text())
    published = [
        (group["resources"]["limits"]["cpu"], group["resources"]["limits"]["memory"], group["maxReplicas"])
        for group in guide.values()
    ]
    groups = worker_groups(A100, WorkersSettings(pool="a100", profile="ado"))
    assert [(int(group.cpu or 0), group.memory, group.max_replicas) for group in groups] == published


def test_a_size_may_have_its_own_idle_timeout() -> None:
    settings = valid(
        {
            "name": "training",
            "rayVersion": "2.60.0",
            "image": "rayproject/ray:2.60.0",
            "workers": {"pool": "a100", "variants": [{"gpus": 1, "idleTimeout": "10s"}, {"gpus": 8}]},
        }
    )
    small, whole = ray_cluster(settings, (A100,))["spec"]["workerGroupSpecs"]
    assert small["idleTimeoutSeconds"] == 10
    assert "idleTimeoutSeconds" not in whole


def test_without_an_autoscaler_no_size_has_an_idle_timeout() -> None:
    with pytest.raises(ValueError, match=r"workers\[0\].variants\[0\].idleTimeout: has no effect"):
        valid(
            {
                "name": "training",
                "rayVersion": "2.60.0",
                "image": "rayproject/ray:2.60.0",
                "autoscaling": False,
                "workers": {"pool": "a100", "variants": [{"gpus": 1, "idleTimeout": "10s"}]},
            }
        )
