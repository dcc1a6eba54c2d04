"""A stack's plan: what starts, what can run at the same time, and promises that the nodes cannot provide."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.nodes import GPU_RESOURCE, gpus_of
from core.problems import StackFileError
from stacks.commands.plan.report import as_object, report
from stacks.planning.overcommitment import overcommitments
from stacks.planning.plan import Plan, plan_of
from tests.unit.planning.stacks import A100, always, cluster, stack, tenant


def maximum(plan: Plan) -> dict[str, int]:
    return {each.settings.name: int(each.maximum[GPU_RESOURCE]) for each in plan.tenants}


def rules(plan: Plan) -> list[str]:
    return [each.rule for each in overcommitments(plan)]


def test_the_nodes_limit_a_tenant_without_other_limits() -> None:
    plan = plan_of(stack(tenant("a")))
    [a] = plan.tenants
    assert maximum(plan) == {"a": 32}
    # The head, with KubeRay's autoscaler, and four workers of a whole node.
    assert [float(usage["cpu"]) for usage in (a.starts, a.maximum)] == [2.5, 2.5 + 4 * 60]
    assert rules(plan) == []


def test_a_run_of_each_size_of_a_job_template_has_a_row_and_counts_nowhere() -> None:
    image = {"rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0", "autoscaling": False}
    job = {"name": "tune", "entrypoint": "python tune.py"}
    own = {**image, "workerGroups": [{"groupName": "gpu", "pool": "a100", "gpus": 1, "replicas": 1}]}
    sizes = {"large": {"workerGroups": [{"groupName": "gpu", "gpus": 8, "replicas": 3}]}}
    plan = plan_of(stack(tenant("a", jobTemplates=[{**job, "cluster": own, "sizes": sizes}])))
    [table] = [each for each in report("a", plan).tables if each.title.startswith("One run of each size")]
    assert [row[:4] for row in table.rows] == [("a/tune", "its own", "1", "1"), ("a/tune", "large", "24", "24")]
    written = json.loads(json.dumps(as_object(plan)))
    assert [(each["size"], each["starts"]["gpus"]) for each in written["runs"]] == [(None, 1), ("large", 24)]
    assert maximum(plan) == {"a": 32}


def test_gpus_of_all_vendors_are_counted_each_on_its_own_nodes() -> None:
    mi300 = {"pool": "mi300", "count": 2, "cpu": 64, "memory": "1000Gi", "gpus": 8, "gpuResource": "amd.com/gpu"}
    both = cluster("both", workers=[always(8, 1), {"pool": "mi300", "variants": [{"gpus": 8, "maxReplicas": 9}]}])
    plan = plan_of(stack(tenant("a", both, quota={"hard": {"requests.amd.com/gpu": 8}}), nodes=[A100, mi300]))
    [a] = plan.tenants
    assert [int(each) for each in (a.starts[GPU_RESOURCE], a.maximum["amd.com/gpu"], gpus_of(a.maximum))] == [
        8,
        8,
        16,
    ]
    assert [group.pools for group in plan.clusters[0].groups[1:]] == [("a100",), ("mi300",)]
    rows = {table.title: table.rows for table in report("dev", plan).tables}
    assert rows["Tenants (GPUs / CPUs / memory)"][0][3:5] == ("16 / 122.5 / 1890Gi", "8 / - / -")


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"quota": {"gpus": 12}}, 12),
        ({"quota": {"cpu": 70}}, 9),
        ({"quota": {"pods": 3}}, 16),
        ({"queue": {"capability": {"gpus": 20}}}, 20),
        ({"queue": "shared"}, 24),
        ({"queue": "shared", "quota": {"gpus": 4}}, 4),
    ],
)
def test_quota_and_queue_limit_a_tenant(settings: dict[str, Any], most: int) -> None:
    queues = [{"name": "shared", "capability": {"gpus": 24}}] if settings.get("queue") == "shared" else []
    scheduler: dict[str, Any] = {"scheduler": {"volcano": {}}} if "queue" in settings else {}
    assert maximum(plan_of(stack(tenant("a", **settings), queues=queues, **scheduler))) == {"a": most}


def test_what_a_queue_cannot_hold_at_once_is_named() -> None:
    def plan_with(gpus: int) -> Plan:
        clusters = [cluster(name, workers=always(8, 1)) for name in ("one", "two")]
        return plan_of(stack(tenant("a", *clusters, queue={"capability": {"gpus": gpus}}), scheduler={"volcano": {}}))

    assert "All 2 RayClusters can start at once." in report("dev", plan_with(16)).sentences
    assert report("dev", plan_with(16)).sentences[0] == "Fits, also with all tenants at their maximum."
    verdict, why, *_ = report("dev", plan_with(12)).sentences
    assert verdict == "Does not fit: not all RayClusters can start at once."
    assert why == (
        "Not at once: queue a has less than its RayClusters start with (nvidia.com/gpu 12 of 16): if they start in "
        "the order of the file, others have to end before a/two can start."
    )
    amounts = {GPU_RESOURCE: {"needed": 16, "most": 12}}
    assert as_object(plan_with(12))["tooSmall"] == [{"limit": "queue a", "amounts": amounts, "waiting": ["a/two"]}]


def test_a_quota_that_does_not_hold_the_jobs_beside_the_clusters_is_named() -> None:
    image = {key: cluster("x", workers=always(8, 1))[key] for key in ("image", "rayVersion", "workers")}
    jobs = [{"name": name, "entrypoint": "python train.py", "cluster": image} for name in ("late", "later")]
    plan = plan_of(stack(tenant("a", cluster("one", workers=always(8, 1)), jobs=jobs, quota={"gpus": 16})))
    [found] = plan.too_small
    assert (found.name, found.waiting) == ("the quota of a", ("a/later",))
    assert found.needed["requests.nvidia.com/gpu"] == 24


def test_a_share_guaranteed_to_others_is_not_available() -> None:
    other = tenant("b", queue={"guarantee": {"gpus": 8}})
    plan = plan_of(stack(tenant("a", queue={"weight": 1}), other, scheduler={"volcano": {}}))
    assert maximum(plan) == {"a": 24, "b": 32}
    assert plan.tenants[1].guaranteed == {GPU_RESOURCE: 8}


def test_two_tenants_that_may_both_have_everything_are_too_many_and_grow_in_turn() -> None:
    plan = plan_of(stack(tenant("a"), tenant("b")))
    assert rules(plan) == ["promises-fit-nodes"]
    assert "nvidia.com/gpu 64 of 32" in next(overcommitments(plan)).message
    assert [int(each.in_file_order[GPU_RESOURCE]) for each in plan.tenants] == [32, 0]
    assert rules(plan_of(stack(tenant("a"), tenant("b"), capacity={"overcommitment": "allowed"}))) == []
    quotas = {"gpus": 16, "cpu": 128, "memory": "2000Gi"}
    plan = plan_of(stack(tenant("a", quota=quotas), tenant("b", quota=quotas)))
    assert (rules(plan), [int(each.in_file_order[GPU_RESOURCE]) for each in plan.tenants]) == ([], [16, 16])


def test_a_queue_that_tenants_share_is_promised_once() -> None:
    queues = [{"name": "shared", "capability": {"gpus": 32, "cpu": 256, "memory": "4000Gi"}}]
    both = (tenant("a", queue="shared"), tenant("b", queue="shared"))
    plan = plan_of(stack(*both, queues=queues, scheduler={"volcano": {}}))
    assert maximum(plan) == {"a": 32, "b": 32}
    assert plan.promised[GPU_RESOURCE] == 32


def test_pods_without_room_to_start_are_named() -> None:
    plan = plan_of(
        stack(tenant("a", cluster("big", workers=always(8, 3))), tenant("b", cluster("c", workers=always(4, 3))))
    )
    assert [(each.owner, each.group, number) for each, number in plan.left_out] == [("b/c", "a100-4gpu", 1)]
    assert rules(plan) == ["starts-fit-nodes", "promises-fit-nodes"]
    assert "1 of b/c (a100-4gpu) would wait" in next(overcommitments(plan)).message


def test_free_gpus_of_several_nodes_fit_no_worker_of_a_whole_node() -> None:
    """By the sums it would fit: 28 + 4 GPUs of 32, but each node has a worker of five."""
    five = {"pool": "a100", "variants": [{"gpus": 5, "minReplicas": 4, "maxReplicas": 4}]}
    plan = plan_of(stack(tenant("a", cluster("fives", workers=five), cluster("whole", workers=always(8, 1)))))
    assert [(each.group, number) for each, number in plan.left_out] == [("a100-5gpu", 1)]


def test_gpus_whose_cpus_are_used_by_heads_cannot_be_provided() -> None:
    """Quotas of 8 and 24 are exactly the 32 GPUs of the nodes, but two heads need CPUs of the last one."""
    works = {"rayStartParams": {"num-cpus": "1"}}
    clusters = (cluster("always", head=works, workers=always(1, 0)), cluster("grows"))
    plan = plan_of(stack(tenant("a", *clusters, quota={"gpus": 8}), tenant("b", *clusters, quota={"gpus": 24})))
    assert rules(plan) == ["promises-fit-nodes"]
    assert "no room for 1 of them" in next(overcommitments(plan)).message
    assert "(b 23 of 24 GPUs)" in next(overcommitments(plan)).message


def test_the_largest_gang_is_the_room_beside_pods_that_always_run() -> None:
    plan = plan_of(stack(tenant("a", cluster("always", workers=always(8, 1)), cluster("grows"))))
    gang = plan.largest_gang
    assert gang is not None
    assert (gang.name, *(int(usage[GPU_RESOURCE]) for usage in (gang.alone, gang.beside))) == ("a/grows", 32, 24)


def test_a_cluster_that_does_not_scale_keeps_its_first_workers() -> None:
    plan = plan_of(stack(tenant("a", cluster("fixed", autoscaling=False, workers=always(4, 2)))))
    assert maximum(plan) == {"a": 8}


def test_costs_range_from_pods_that_always_run_to_the_most_that_can_run() -> None:
    priced = [{**A100, "gpuHourPrice": 3}]
    plan = plan_of(
        stack(tenant("a", cluster("c", workers=always(4, 1)), cluster("d"), quota={"gpus": 20}), nodes=priced), 9
    )
    assert plan.tenants[0].cost == plan.cost == (4 * 3, 20 * 3)
    assert plan_of(stack(tenant("a"))).cost is None
    assert plan_of(stack(tenant("a")), 2).cost == (0, 64)


def test_redis_takes_room_as_well() -> None:
    with_redis = plan_of(stack(tenant("a", cluster("c", faultTolerance=True)), redis={}))
    assert sum(len(node.pods) for node in with_redis.started.nodes) > 1 + sum(
        len(node.pods) for node in plan_of(stack(tenant("a"))).started.nodes
    )


def test_a_stack_without_nodes_has_no_room() -> None:
    alone = {"name": "c", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}
    plan = plan_of(stack(tenant("a", alone), nodes=[]))
    assert [each.group for each, _ in plan.left_out] == ["head"]
    [problem] = overcommitments(plan)
    assert problem.message == "the file has no ray-platform:nodes, so that no pod has room: add your pools of nodes"


def test_a_stack_with_overcommitment_error_is_refused_if_it_promises_too_much() -> None:
    with pytest.raises(StackFileError, match="tenants together may use more than the nodes have"):
        stack(tenant("a"), tenant("b"), capacity={"overcommitment": "error"})
    stack(tenant("a"), capacity={"overcommitment": "error"})


@st.composite
def tenants(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Up to four tenants with all kinds of quotas, and workers that always run."""
    found = []
    for index in range(draw(st.integers(1, 4))):
        gpus, number = draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 3))
        quota = draw(st.none() | st.integers(number * gpus + 8, 48).map(lambda most: {"gpus": most}))
        clusters = [cluster("always", workers=always(gpus, number)), cluster("grows")]
        found.append(tenant(f"t{index}", *clusters, **({"quota": quota} if quota else {})))
    return found


@given(tenants())
def test_no_tenant_has_more_than_quota_and_nodes_and_none_has_less_in_turn_than_it_starts_with(
    tenants: list[dict[str, Any]],
) -> None:
    plan = plan_of(stack(*tenants))
    assert sum(each.in_file_order[GPU_RESOURCE] for each in plan.tenants) <= 32
    for each in plan.tenants:
        most = min(32, each.settings.quota.gpus if each.settings.quota and each.settings.quota.gpus else 32)
        assert each.in_file_order[GPU_RESOURCE] <= each.maximum[GPU_RESOURCE] <= most
        if not plan.left_out:
            assert each.in_file_order[GPU_RESOURCE] >= each.starts.get(GPU_RESOURCE, 0)
    if not list(overcommitments(plan)):
        assert all(each.in_file_order[GPU_RESOURCE] == each.maximum[GPU_RESOURCE] for each in plan.tenants)


def test_a_ray_cluster_that_is_suspended_has_no_pods_to_plan() -> None:
    plan = plan_of(stack(tenant("a", cluster("asleep", overrides={"suspend": True}), cluster("awake"))))
    assert [(each.name, len(each.groups)) for each in plan.tenants[0].clusters] == [("a/asleep", 0), ("a/awake", 5)]
    assert report("Pulumi.dev.yaml", plan).tables


def test_the_pod_that_suspends_idle_clusters_has_its_place() -> None:
    rests = cluster("training", idleTerminationOptions={"timeoutSeconds": 600})
    taken = plan_of(stack(tenant("a", rests))).started.taken_by_owner()
    assert taken["a/ray-idle-termination"]["cpu"] == Decimal("0.01")
