"""A RayCluster for which there is no room on empty nodes is refused, and no other one."""

from collections.abc import Container
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from components.capacity.placement import Nodes, without_room
from core.problems import Problem
from stacks.objects.ray_clusters import demanded, rendered
from stacks.planning.demands import workers_of
from stacks.settings import StackSettings

POOLS = [
    {"pool": "a100", "count": 3, "cpu": 64, "memory": "512Gi", "gpus": 8, "gpuProduct": "A100"},
    {"pool": "h100", "count": 2, "cpu": 96, "memory": "1Ti", "gpus": 4, "gpuProduct": "H100"},
    {"pool": "cpu", "count": 4, "cpu": 16, "memory": "64Gi", "labels": {"example.com/pool": "cpu"}},
]

GROUP = st.fixed_dictionaries(
    {
        "pool": st.sampled_from(["a100", "h100", "cpu"]),
        "cpu": st.integers(1, 16),
        "memory": st.sampled_from(["1Gi", "40Gi"]),
        "minReplicas": st.integers(0, 9),
    }
)


def problems(
    cluster: dict[str, Any], pools: list[dict[str, Any]], elsewhere: Container[str] = ()
) -> tuple[list[Problem], int]:
    """The problems of a cluster, and how many of its initial pods find no place on the nodes when they are placed."""
    cluster = {"name": "c", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **cluster}
    values = {"nodes": pools, "tenants": [{"name": "a", "clusters": [cluster]}]}
    stack = StackSettings.model_validate(values)
    [tenant] = stack.tenants
    parts = (stack, tenant, tenant.clusters[0])
    body, demand = rendered(*parts), demanded(*parts)
    workers = workers_of("a/c", body, demand)
    found = list(without_room(zip(demand.groups, workers, strict=True), stack.nodes, elsewhere))
    return found, sum(number for _, number in Nodes(stack.nodes).start(workers))


@settings(max_examples=300, derandomize=True)
@given(st.lists(GROUP, min_size=1, max_size=3), st.integers(1, 128))
def test_whatever_is_refused_finds_no_place(groups: list[dict[str, Any]], cpu: int) -> None:
    named = [{**group, "groupName": f"g{index}"} for index, group in enumerate(groups)]
    found, waiting = problems({"head": {"cpu": cpu}, "workerGroups": named}, POOLS)
    assert not found or waiting


@settings(max_examples=200, derandomize=True)
@given(GROUP)
def test_equal_workers_on_one_pool_are_refused_exactly_if_some_find_no_place(group: dict[str, Any]) -> None:
    # The head has nodes of its own.
    pools = [
        *POOLS,
        {"pool": "system", "count": 1, "cpu": 8, "memory": "32Gi", "labels": {"example.com/pool": "system"}},
    ]
    found, waiting = problems({"head": {"pool": "system"}, "workerGroups": [{**group, "groupName": "g"}]}, pools)
    assert bool(found) == bool(waiting)


def test_workers_of_no_pool_may_run_on_nodes_that_the_stack_file_lacks() -> None:
    values = {"workerGroups": [{"groupName": "g", "cpu": 60, "memory": "1Gi", "minReplicas": 50}]}
    assert [each.rule for each in problems(values, POOLS)[0]] == ["workers-fit-pool"]
    assert problems(values, POOLS, elsewhere={"g"})[0] == []


def test_pods_that_no_node_holds_are_refused_although_each_amount_fits_on_one() -> None:
    group = {"groupName": "g", "cpu": 90, "memory": "1Gi", "gpus": 8}
    [found] = problems({"workerGroups": [group]}, POOLS)[0]
    assert "a node of a100, h100, cpu has no room" in found.message
