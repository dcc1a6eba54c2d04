"""Pods on nodes: what is placed fits, forbidden nodes stay empty, and a RayCluster without room is refused."""

from collections.abc import Container
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.capacity.limits import Account, eligible
from components.capacity.placement import PODS_PER_NODE, RESOURCES, Nodes, Workers, held, without_room
from components.tenant.demand import Usage
from core.nodes import GPU_RESOURCE, NodePool
from core.problems import Problem
from stacks.objects.ray_clusters import demanded, rendered
from stacks.planning.demands import workers_of
from stacks.settings import StackSettings

A100 = NodePool.model_validate(
    {"pool": "a100", "count": 2, "cpu": 64, "memory": "1000Gi", "gpus": 8, "gpuProduct": "A"}
)
CPU = NodePool.model_validate(
    {"pool": "cpu", "count": 1, "cpu": 32, "memory": "64Gi", "labels": {"role": "cpu"}, "taints": [{"key": "only-cpu"}]}
)
POOLS = (A100, CPU)


def amounts(gpus: int = 0, cpu: int = 0, memory: int = 0) -> Usage:
    return {GPU_RESOURCE: Decimal(gpus), "cpu": Decimal(cpu), "memory": Decimal(memory * 2**30)}


def workers(usage: Usage, least: int = 0, most: int | None = None, **more: Any) -> Workers:
    return Workers(
        **{"owner": "a/b", "group": "g", "spec": {}, "hosts": 1, **more}, usage=usage, least=least, most=most
    )


def on(nodes: Nodes) -> list[tuple[str, int, int]]:
    """Nodes with pods, and how many."""
    return [(node.pool.pool, node.number, len(node.pods)) for node in nodes.nodes if node.pods]


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 70), st.integers(0, 1100), st.integers(0, 5), st.integers(1, 3)),
        max_size=6,
    )
)
def test_no_node_exceeds_its_capacity_and_no_pod_is_lost(configured: list[tuple[int, int, int, int, int]]) -> None:
    groups = [
        workers({key: value * hosts for key, value in amounts(gpus, cpu, memory).items()}, least, hosts=hosts)
        for gpus, cpu, memory, least, hosts in configured
    ]
    nodes = Nodes(POOLS)
    left_out = nodes.start(groups)
    for node in nodes.nodes:
        empty = amounts(node.pool.gpus, int(node.pool.cpu), int(node.pool.memory.removesuffix("Gi")))
        taken = [sum((pod.amounts[at] for pod in node.pods), Decimal(0)) for at in range(len(RESOURCES))]
        assert list(node.free[:-1]) == [empty[resource] - each for resource, each in zip(RESOURCES, taken, strict=True)]
        assert min(node.free) >= 0
    placed = sum(len(node.pods) for node in nodes.nodes)
    missing = sum(number * each.hosts for each, number in left_out)
    assert placed + missing == sum(each.least * each.hosts for each in groups)


@given(st.lists(st.sampled_from([1, 2, 4, 8]), max_size=40))
def test_sizes_that_divide_a_node_remain_unplaced_only_if_gpus_are_short(sizes: list[int]) -> None:
    nodes = Nodes((A100,))
    left_out = nodes.start([workers(amounts(size), least=1) for size in sizes])
    assert bool(left_out) == (sum(sizes) > 16)


def test_a_worker_of_several_hosts_starts_whole_or_not_at_all() -> None:
    nodes = Nodes((A100,))
    worker = workers(amounts(24), least=1, hosts=3)
    assert nodes.start([worker]) == [(worker, 1)]
    assert on(nodes) == []
    assert nodes.place(workers(amounts(16), hosts=2))
    assert on(nodes) == [("a100", 0, 1), ("a100", 1, 1)]


def test_pods_fill_a_node_before_the_next_one_with_no_more_than_a_kubelet_runs() -> None:
    nodes = Nodes((A100,))
    nodes.start([workers(amounts(1), least=9)])
    assert on(nodes) == [("a100", 0, 8), ("a100", 1, 1)]
    nodes = Nodes((A100,))
    nodes.grow([workers({})])
    assert on(nodes) == [("a100", 0, PODS_PER_NODE), ("a100", 1, PODS_PER_NODE)]


def test_workers_grow_to_the_limits_of_groups_accounts_and_nodes() -> None:
    nodes = Nodes((A100,))
    account = Account({GPU_RESOURCE: Decimal(13)})
    nodes.grow([workers(amounts(1)), workers(amounts(4), most=2)], {"a/b": [account]})
    assert nodes.taken() == {**amounts(13)}
    assert account.used[GPU_RESOURCE] == 13
    unbounded = Nodes((A100,))
    unbounded.grow([workers(amounts(1))])
    assert unbounded.gpus_by_pool() == {"a100": 16}


@given(st.integers(0, 9), st.integers(0, 70), st.integers(0, 1100))
def test_an_empty_node_holds_as_many_as_are_placed_on_it(gpus: int, cpu: int, memory: int) -> None:
    one = A100.model_copy(update={"count": 1})
    nodes, pod = Nodes((one,)), workers(amounts(gpus, cpu, memory))
    nodes.grow([pod])
    assert len(nodes.nodes[0].pods) == held(pod, one)


def test_a_trial_is_undone() -> None:
    nodes = Nodes((A100,))
    nodes.start([workers(amounts(6), least=1)])
    before = nodes.nodes
    with nodes.trial() as added:
        nodes.grow([workers(amounts(2), owner="other")])
        assert on(nodes) == [("a100", 0, 2), ("a100", 1, 4)]
        assert added() == amounts(10)
        assert nodes.taken_by_owner() == {"a/b": amounts(6), "other": amounts(10)}
    assert [(each.free, each.pods) for each in nodes.nodes] == [(each.free, each.pods) for each in before]
    assert nodes.place(workers(amounts(2)))


def affinity(**expression: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


TOLERANT = {"tolerations": [{"key": "only-cpu", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["a100"]),
        (TOLERANT, ["a100", "cpu"]),
        ({"tolerations": [{"operator": "Exists"}]}, ["a100", "cpu"]),
        ({"tolerations": [{"key": "only-cpu", "operator": "Equal", "value": "x"}]}, ["a100"]),
        ({"tolerations": [{"key": "only-cpu", "effect": "NoExecute"}]}, ["a100"]),
        ({**TOLERANT, "nodeSelector": {"role": "cpu"}}, ["cpu"]),
        ({**TOLERANT, "nodeSelector": {"role": "gpu"}}, []),
        ({"nodeSelector": {"zone": "z1"}}, ["a100"]),
        ({**TOLERANT, **affinity(key="nvidia.com/gpu.product", operator="In", values=["A", "B"])}, ["a100"]),
        ({**TOLERANT, **affinity(key="nvidia.com/gpu.product", operator="NotIn", values=["A"])}, ["cpu"]),
        ({**TOLERANT, **affinity(key="role", operator="Exists")}, ["cpu"]),
        ({**TOLERANT, **affinity(key="role", operator="DoesNotExist")}, ["a100"]),
        ({**TOLERANT, **affinity(key="zone", operator="In", values=["z1"])}, ["a100", "cpu"]),
    ],
)
def test_a_pod_is_placed_where_labels_and_taints_allow_it(spec: dict[str, Any], expected: list[str]) -> None:
    assert [pool.pool for pool in eligible(spec, POOLS)] == expected


EMPTY_POOLS = [
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
    workers = workers_of(stack.nodes, "a/c", body, demand)
    found = list(without_room(zip(demand.groups, workers, strict=True), stack.nodes, elsewhere))
    return found, sum(number for _, number in Nodes(stack.nodes).start(workers))


@settings(max_examples=300, derandomize=True)
@given(st.lists(GROUP, min_size=1, max_size=3), st.integers(1, 128))
def test_whatever_is_refused_finds_no_place(groups: list[dict[str, Any]], cpu: int) -> None:
    named = [{**group, "groupName": f"g{index}"} for index, group in enumerate(groups)]
    found, waiting = problems({"head": {"cpu": cpu}, "workerGroups": named}, EMPTY_POOLS)
    assert not found or waiting


@settings(max_examples=200, derandomize=True)
@given(GROUP)
def test_equal_workers_on_one_pool_are_refused_exactly_if_some_find_no_place(group: dict[str, Any]) -> None:
    # The head has nodes of its own.
    pools = [
        *EMPTY_POOLS,
        {"pool": "system", "count": 1, "cpu": 8, "memory": "32Gi", "labels": {"example.com/pool": "system"}},
    ]
    found, waiting = problems({"head": {"pool": "system"}, "workerGroups": [{**group, "groupName": "g"}]}, pools)
    assert bool(found) == bool(waiting)


def test_workers_of_no_pool_may_run_on_nodes_that_the_stack_file_lacks() -> None:
    values = {"workerGroups": [{"groupName": "g", "cpu": 60, "memory": "1Gi", "minReplicas": 50}]}
    assert [each.rule for each in problems(values, EMPTY_POOLS)[0]] == ["workers-fit-pool"]
    assert problems(values, EMPTY_POOLS, elsewhere={"g"})[0] == []


def test_pods_that_no_node_holds_are_refused_although_each_amount_fits_on_one() -> None:
    group = {"groupName": "g", "cpu": 90, "memory": "1Gi", "gpus": 8}
    [found] = problems({"workerGroups": [group]}, EMPTY_POOLS)[0]
    assert "a node of a100, h100, cpu has no room" in found.message
