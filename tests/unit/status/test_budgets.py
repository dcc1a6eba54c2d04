"""Queues of both schedulers, and quotas, with what is used of them."""

from decimal import Decimal
from typing import Any

from core.body import Body
from core.nodes import GPU_RESOURCE
from stacks.commands.status.budgets import QueueStatus, queue_statuses, quota_status
from stacks.commands.status.snapshot import Found
from tests.unit.status.live import condition, found, metadata


def gpus(number: int) -> dict[str, Decimal]:
    return {GPU_RESOURCE: Decimal(number)}


def volcano(*namespaces: Found, **status: Any) -> QueueStatus:
    body = {
        "metadata": metadata("research"),
        "spec": {"deserved": {GPU_RESOURCE: "16"}, "capability": {GPU_RESOURCE: "24", "memory": "1Ti"}},
        "status": {"state": "Open", "allocated": {GPU_RESOURCE: "8", "cpu": "500m", "pods": "3"}, **status},
    }
    [shown] = queue_statuses(["research"], "volcano", found(queues=[body]), namespaces)
    return shown


def gang(name: str, phase: str, queue: str = "research") -> Body:
    return {"metadata": metadata(name), "spec": {"queue": queue}, "status": {"phase": phase}}


def test_a_queue_of_volcano_has_its_gangs_counted() -> None:
    first = found(podgroups=[gang("a", "Running"), gang("b", "Pending"), gang("c", "Pending", queue="other")])
    second = found(podgroups=[gang("d", "Inqueue")])
    shown = volcano(first, second)
    assert (shown.ok, shown.admitted, shown.waiting) == (True, 1, 2)
    assert (shown.used[GPU_RESOURCE], shown.used["cpu"]) == (Decimal(8), Decimal("0.5"))
    assert (shown.deserved, shown.limit[GPU_RESOURCE]) == (gpus(16), Decimal(24))


def test_without_the_right_to_read_gangs_nobody_knows_what_waits() -> None:
    shown = volcano(found({"podgroups": "forbidden"}), found(podgroups=[gang("a", "Pending")]))
    assert (shown.admitted, shown.waiting) == (None, None)


def test_nothing_starts_in_a_closed_queue() -> None:
    shown = volcano(state="Closed")
    assert (shown.ok, shown.reasons) == (False, ("it is Closed, and nothing starts in a queue that is not Open",))


def kueue(active: Body, cohort: str | None = "ray-platform", **borrowing: str) -> QueueStatus:
    of_gpus = {"name": GPU_RESOURCE, "nominalQuota": "8", **borrowing}
    usage = [{"name": GPU_RESOURCE, "total": "12", "borrowed": "4"}]
    flavors = [
        {"name": "a100", "resources": [of_gpus]},
        {"name": "h100", "resources": [{**of_gpus, "nominalQuota": "16"}]},
    ]
    body = {
        "metadata": metadata("research"),
        "spec": {"cohortName": cohort, "resourceGroups": [{"coveredResources": [GPU_RESOURCE], "flavors": flavors}]},
        "status": {
            "conditions": [active],
            "flavorsUsage": [{"name": "a100", "resources": usage}],
            "pendingWorkloads": 2,
            "admittedWorkloads": 1,
        },
    }
    [shown] = queue_statuses(["research"], "kueue", found(clusterqueues=[body]), [])
    return shown


def test_a_queue_of_kueue_is_the_sum_of_its_flavors() -> None:
    shown = kueue(condition("Active", "True"), borrowingLimit="4")
    assert (shown.ok, shown.admitted, shown.waiting) == (True, 1, 2)
    assert (shown.used, shown.deserved, shown.limit) == (gpus(12), gpus(24), gpus(32))


def test_a_queue_without_a_borrowing_limit_has_no_limit_in_a_cohort() -> None:
    assert kueue(condition("Active", "True")).limit == {}
    assert kueue(condition("Active", "True"), cohort=None).limit == gpus(24)


def test_a_queue_that_kueue_does_not_serve_has_the_reason() -> None:
    shown = kueue(condition("Active", "False", "Can't admit new workloads: FlavorNotFound."))
    assert (shown.ok, shown.reasons) == (False, ("it is not active: Can't admit new workloads: FlavorNotFound.",))


def test_a_queue_of_the_stack_file_that_does_not_exist_is_named() -> None:
    [shown] = queue_statuses(["research"], "volcano", found(queues=[]), [])
    assert (shown.ok, shown.reasons[0][:40]) == (False, "it is in the stack file and not in the c")


def test_queues_that_must_not_be_read_are_not_called_missing() -> None:
    assert queue_statuses(["research"], "volcano", found({"queues": "forbidden"}), []) == []


def test_a_quota_has_what_is_used_of_it() -> None:
    hard = {"requests.nvidia.com/gpu": "16", "requests.memory": "1Ti", "services.nodeports": "0"}
    body = {"metadata": metadata("ray-platform"), "spec": {"hard": hard}}
    counted = quota_status({**body, "status": {"hard": hard, "used": {**hard, "requests.nvidia.com/gpu": "8"}}})
    assert (counted.used["gpus"], counted.hard["gpus"], "cpu" in counted.hard) == (Decimal(8), Decimal(16), False)
    not_yet = quota_status(body)
    assert (not_yet.used, not_yet.hard["memory"]) == ({}, Decimal(2**40))
