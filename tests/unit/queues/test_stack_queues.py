"""The queues of a stack and their users, conflicts between queues, and RayClusters that could never start in one."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.queues.budget import beyond_quotas, beyond_room, on_nodes, problems_of_queues, rooms
from components.queues.settings import Queue, QueueSettings, children, parents_first
from components.ray_cluster.manifests import NO_SCHEDULING, Scheduling, ray_cluster
from components.ray_cluster.rules import valid
from components.tenant.demand import Demand, demand
from core.nodes import GPU_RESOURCE
from core.problems import Problem, Problems
from stacks.load import parse
from stacks.objects.queues import queues_of, scheduling_of, usable
from stacks.settings import StackSettings
from tests.unit.queues.tree import POOL, amounts, queue, trees


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


def rules(problems: list[Problem]) -> list[tuple[str, Any]]:
    """Rule and path of each problem."""
    return [(each.rule, each.path) for each in problems]


def training(*variants: dict[str, Any], **keys: Any) -> Demand:
    """The demand of a RayCluster. Its head has 2 CPUs, in addition to KubeRay's autoscaler."""
    workers = {"pool": "a100", "variants": list(variants)} if variants else None
    cluster = {"name": "training", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", **keys}
    settings = valid({**cluster, **({"workers": workers} if workers else {}), "head": {"cpu": 2, "memory": "8Gi"}})
    return demand(ray_cluster(settings, (POOL,)), None)


def refused(demand: Demand, *queues: Queue, name: str = "team-a") -> list[Problem]:
    return list(beyond_room("training", demand, name, rooms(queues, [POOL])[name]))


@given(configured=amounts())
def test_amounts_in_order_are_accepted(configured: dict[str, Any]) -> None:
    QueueSettings.model_validate(configured)


@given(configured=amounts(), part=st.sampled_from(["guarantee", "deserved"]), resource=st.sampled_from(["gpus", "cpu"]))
def test_an_amount_above_the_next_one_is_refused_with_both_numbers(
    configured: dict[str, Any], part: str, resource: str
) -> None:
    limit = configured.get("capability", {}).get(resource)
    if limit is None:
        return
    above = {**configured, part: {**configured[part], resource: limit + 1}}
    with pytest.raises(ValueError, match=rf"{part} {limit + 1} of .* is more than \w+ \d+"):
        QueueSettings.model_validate(above)


def test_deserved_is_at_least_the_guarantee() -> None:
    settings = QueueSettings.model_validate({"guarantee": {"gpus": 8}, "deserved": {"cpu": 64}})
    assert settings.amounts("deserved") == {GPU_RESOURCE: 8, "cpu": 64}


def test_the_guarantee_of_each_product_is_deserved_too() -> None:
    guarantee = {"gpusByProduct": {"A100": 8, "H100": 8}}
    QueueSettings.model_validate({"guarantee": guarantee, "deserved": {"cpu": 64}})
    QueueSettings.model_validate({"guarantee": guarantee, "deserved": {"gpusByProduct": {"A100": 8, "H100": 16}}})
    with pytest.raises(ValueError, match="guarantee 8 of A100 is more than deserved 0"):
        QueueSettings.model_validate({"guarantee": guarantee, "deserved": {"gpusByProduct": {"H100": 16}}})


@given(tree=trees())
def test_in_a_valid_tree_every_level_fits_into_its_parent(tree: list[Queue]) -> None:
    if problems_of_queues(tree, [POOL]):
        return
    nodes = on_nodes([POOL])
    for resource, available in nodes.items():
        guaranteed = [each.settings.amounts("guarantee").get(resource, 0) for each in children(tree)[None]]
        assert sum(guaranteed) <= available
    for parent in tree:
        for child in children(tree)[parent.name]:
            for resource, most in child.settings.amounts("capability").items():
                assert most <= parent.settings.amounts("capability").get(resource, 0)


@given(tree=trees())
def test_the_room_of_a_queue_is_never_more_than_that_of_its_parent_or_its_capability(tree: list[Queue]) -> None:
    by_queue = rooms(tree, [POOL])
    for each in tree:
        for resource, room in by_queue[each.name].items():
            above = by_queue[each.settings.parent] if each.settings.parent else {}
            assert room.most <= each.settings.amounts("capability").get(resource, room.most)
            assert resource not in above or room.most <= above[resource].most


@given(tree=trees())
def test_every_queue_of_a_valid_tree_has_room_for_its_guarantee(tree: list[Queue]) -> None:
    if problems_of_queues(tree, [POOL]):
        return
    by_queue = rooms(tree, [POOL])
    for each in children(tree)[None]:
        for resource, kept in each.settings.amounts("guarantee").items():
            assert by_queue[each.name][resource].most >= kept


@given(tree=trees(most=6), order=st.randoms(use_true_random=False))
def test_parents_come_before_their_children_in_any_configured_order(tree: list[Queue], order: Any) -> None:
    shuffled = list(tree)
    order.shuffle(shuffled)
    ordered = [each.name for each in parents_first(shuffled)]
    assert sorted(ordered) == sorted(each.name for each in tree)
    for each in tree:
        assert each.settings.parent is None or ordered.index(each.settings.parent) < ordered.index(each.name)


def test_a_cycle_is_reported_at_each_of_its_queues_only() -> None:
    circle = [queue("a", parent="c"), queue("b", parent="a"), queue("c", parent="b"), queue("below", parent="a")]
    assert rules(problems_of_queues(circle, [])) == [
        ("queue-above-itself", ("a", "parent")),
        ("queue-above-itself", ("b", "parent")),
        ("queue-above-itself", ("c", "parent")),
    ]


def test_the_parents_capability_limits_children_if_it_sets_nothing_else() -> None:
    parent = queue("research", capability={"gpus": 8})
    below = [queue(name, parent="research", guarantee={"gpus": 5}) for name in ("vision", "speech")]
    found = problems_of_queues([parent, *below], [POOL])
    assert ("children-within-parent", ("research", "capability")) in rules(found)
    assert "guarantee of the queues below 'research' is 10 of nvidia.com/gpu in total (vision 5, speech 5)" in str(
        Problems(found)
    )


def test_without_nodes_in_the_stack_file_they_limit_nothing() -> None:
    greedy = [queue("a", guarantee={"gpus": 1000})]
    assert problems_of_queues(greedy, []) == []
    assert rules(problems_of_queues(greedy, [POOL])) == [("guarantees-fit-nodes", ("a", "guarantee", "gpus"))]


def test_a_gang_is_the_head_with_its_autoscaler_and_the_minimum_workers() -> None:
    gang = training({"gpus": 4, "minReplicas": 2}, {"gpus": 8}).gang
    assert gang[GPU_RESOURCE] == 8
    assert gang["pods"] == 3
    assert gang["cpu"] == Decimal("2.5") + 2 * 30


def test_the_gang_of_a_cluster_that_does_not_scale_is_the_whole_cluster() -> None:
    gang = training(autoscaling=False, workerGroups=[{"groupName": "all", "cpu": 1, "replicas": 3}]).gang
    assert (gang["pods"], gang["cpu"]) == (Decimal(4), Decimal(5))


def test_a_gang_that_just_fits_is_accepted_and_one_more_worker_is_not() -> None:
    own = queue("team-a", capability={"gpus": 16})
    assert refused(training({"gpus": 8, "minReplicas": 2}), own) == []
    found = refused(training({"gpus": 8, "minReplicas": 3, "maxReplicas": 3}), own)
    assert rules(found) == [("gang-fits-queue", ())]
    assert "starts with nvidia.com/gpu 24 (worker group 'a100-8gpu' 24)" in found[0].message
    assert "never has more than 16 (capability of queue 'team-a' is 16)" in found[0].message


def test_an_ancestor_of_the_queue_may_limit_a_gang() -> None:
    tree = [queue("research", capability={"gpus": 8}), queue("team-a", parent="research")]
    (found,) = refused(training({"gpus": 8, "minReplicas": 2}), *tree)
    assert "(capability of queue 'research' is 8)" in found.message


def test_a_later_worker_must_fit_in_addition_to_the_gang() -> None:
    gang = training({"gpus": 4, "minReplicas": 1}, {"gpus": 8})
    assert rules(refused(gang, queue("team-a", capability={"gpus": 8}))) == [
        ("worker-fits-queue", ("spec", "workerGroupSpecs", 1))
    ]
    assert refused(gang, queue("team-a", capability={"gpus": 12})) == []


def test_the_quotas_of_all_namespaces_together_must_reach_the_guarantee() -> None:
    shared = queue("research", "team-a", "team-b", guarantee={"gpus": 8})
    assert list(beyond_quotas(shared, [{GPU_RESOURCE: Decimal(4)}, {GPU_RESOURCE: Decimal(4)}])) == []
    (found,) = beyond_quotas(shared, [{GPU_RESOURCE: Decimal(4)}, {GPU_RESOURCE: Decimal(3)}])
    assert "the quota of its namespaces (team-a, team-b) is 7" in found.message


def test_a_namespace_without_a_quota_for_the_resource_has_no_limit() -> None:
    shared = queue("research", "team-a", "team-b", guarantee={"gpus": 8})
    assert list(beyond_quotas(shared, [{GPU_RESOURCE: Decimal(4)}, {"cpu": Decimal(4)}])) == []
