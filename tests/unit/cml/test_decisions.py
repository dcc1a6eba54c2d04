"""What is decided for applications and nodes in each state."""

from typing import Any

import pytest

from components.cml.applications import Application
from components.cml.decisions import Step, decide
from components.cml.manifests import THE_HEAD, Member, application, nodes
from components.cml.settings import CmlSettings

CLUSTER = {"name": "lab", "project": "p", "rayVersion": "2.60.0", "resources": {"cpu": 4, "memory": 16}}


def inputs(**changes: Any) -> dict[str, Any]:
    values = {"host": "https://ml.example.com", "clusters": [{**CLUSTER, **changes}]}
    settings = CmlSettings.model_validate(values, by_name=False)
    return nodes(settings, settings.clusters[0], "dev")


def live(member: Member, status: str = "RUNNING", id_: str = "1", of: dict[str, Any] | None = None) -> Application:
    body = application(of or inputs(), member, "token", id_)
    shown = {**body, "id": f"{member}.{id_}", "status": f"APPLICATION_{status}"}
    return Application.of("p", shown)


HEAD = live(THE_HEAD)
NODES = {"head.1": "IDLE"}


def worker(number: int, status: str = "RUNNING", id_: str = "1") -> Application:
    return live(Member("workers", number), status, id_)


def decided(count: int, states: dict[int, str | None], status: str = "RUNNING", **changes: Any) -> Step:
    """The step with a head that answers, and workers whose nodes have these states; None: they have not joined."""
    workers = [worker(number, status) for number in states]
    joined = {f"workers-{number}.1": state for number, state in states.items() if state}
    return decide(inputs(numWorkers=count, **changes), [HEAD, *workers], {**NODES, **joined})


def ids(applications: list[Application]) -> list[str]:
    return [each.id for each in applications]


@pytest.mark.parametrize("status", ["STARTING", "RUNNING", "UNKNOWN"])
def test_nothing_is_done_to_workers_before_there_is_a_head_that_answers(status: str) -> None:
    assert decide(inputs(), [], None) == Step(create=[THE_HEAD])
    failed = worker(0, "FAILED")
    assert decide(inputs(numWorkers=0), [live(THE_HEAD, status), failed], None) == Step(waiting=[HEAD.name])


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "STOPPING"])
def test_all_is_deleted_with_a_head_that_has_ended(status: str) -> None:
    head = live(THE_HEAD, status)
    step = decide(inputs(), [worker(0), head], None)
    assert ids(step.delete) == ["workers-0.1", "head.1"]
    assert step.lost.startswith(
        f"the head is {status}, and with it tasks, actors, objects, jobs and what people deployed"
    )


def test_what_is_lost_with_a_head_is_reported_once_and_not_for_one_that_an_update_ends() -> None:
    deleted = worker(0, "STOPPING")
    assert decide(inputs(), [worker(0)], None).lost.startswith("the head was deleted, and with it tasks")
    assert decide(inputs(), [deleted, live(THE_HEAD, "STOPPING")], None).lost == ""
    assert decide(inputs(), [live(THE_HEAD, "STOPPED")], None).lost == ""
    assert decide(inputs(suspend=True), [worker(0), live(THE_HEAD, "FAILED")], None).lost == ""


def test_missing_workers_get_the_lowest_free_numbers() -> None:
    step = decided(4, {1: "IDLE", 3: "RUNNING"})
    assert step.create == [Member("workers", 0), Member("workers", 2)]
    assert step.joined == 2
    step = decided(1, {0: "DEAD"})
    assert (ids(step.delete), step.create) == (["workers-0.1"], [])


def test_workers_leave_in_the_order_of_what_they_do() -> None:
    states: dict[int, str | None] = {0: "RUNNING", 1: None, 2: "IDLE", 3: "RUNNING", 4: "IDLE"}
    assert (decided(4, states).idle, decided(4, states).busy) == (["workers-4.1"], [])
    assert decided(3, states).idle == ["workers-4.1", "workers-2.1"]
    two = decided(2, states)
    assert (two.idle, two.busy, len(two.leaving)) == (["workers-4.1", "workers-2.1"], [], 3)
    assert decided(1, states).busy == ["workers-3.1"]


def test_a_worker_that_leaves_without_a_script_or_whose_node_has_ended_is_deleted() -> None:
    assert ids(decided(0, {0: None}, "STARTING").delete) == ["workers-0.1"]
    for status in ("RUNNING", "UNKNOWN"):
        step = decided(0, {0: None}, status)
        assert (step.delete, step.leaving, step.idle, step.busy) == ([], [worker(0).name], [], [])
    step = decided(1, {0: "DRAINING"})
    assert (step.create, step.leaving, step.delete) == ([Member("workers", 1)], [worker(0).name], [])


@pytest.mark.parametrize("status", ["FAILED", "STOPPED", "STOPPING"])
@pytest.mark.parametrize("ends", [{"suspend": True}, {"port": 6380}])
def test_a_worker_that_has_ended_keeps_no_head_that_is_to_end(status: str, ends: dict[str, Any]) -> None:
    step = decided(1, {0: None}, status, **ends)
    assert (ids(step.delete), step.leaving) == (["workers-0.1"], [])


def test_of_two_applications_of_one_name_the_running_one_stays() -> None:
    step = decide(
        inputs(), [HEAD, worker(0, "STARTING", "1"), worker(0, "RUNNING", "2")], {**NODES, "workers-0.2": "IDLE"}
    )
    assert (ids(step.delete), step.joined) == (["workers-0.1"], 1)


def test_a_changed_head_waits_for_its_workers() -> None:
    step = decided(2, {0: "IDLE", 1: "RUNNING"}, port=6380)
    assert (step.idle, step.busy, step.delete, step.create) == (["workers-0.1"], ["workers-1.1"], [], [])
    assert ids(decided(2, {}, port=6380).delete) == ["head.1"]
    unknown = decide(inputs(port=6380), [HEAD, worker(0)], None)
    assert (unknown.delete, unknown.leaving) == ([], [worker(0).name])


def test_applications_of_others_are_not_looked_at() -> None:
    other = Application.of("p", {"id": "x", "name": "ray.dev.lab.notes.head", "status": "APPLICATION_FAILED"})
    assert decide(inputs(numWorkers=0), [HEAD, other], NODES).done
