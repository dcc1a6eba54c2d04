"""What `up` and `destroy` do in a workspace of Cloudera ML. Ray is simulated, unlike in tests/engine/test_cml.py."""

from typing import Any

import pytest

from components.cml import reconcile
from components.cml.client import Client, CmlError, NotAnsweredError, QuotaError
from components.cml.decisions import decide
from components.cml.reconcile import NotReadyError
from testbed.cml.server import Faults
from testbed.cml.workspace import App, Limits
from tests.unit.cml.conftest import TOKEN, MakePlace, Place

pytestmark = pytest.mark.thorough

NAMES = ["ray.dev.training.head", "ray.dev.training.workers-0", "ray.dev.training.workers-1"]


def node(app: App) -> str:
    return app.environment["RAY_CLOUD_INSTANCE_ID"]


def test_the_head_is_created_first_and_workers_once_it_answers(place: Place) -> None:
    made = place.make(place.inputs())
    assert place.names == NAMES
    assert next(app.body["name"] for app in place.workspace.apps.values()) == NAMES[0]
    assert (made["state"], made["joined"]) == ("ready", 2)
    assert made["applications"][NAMES[1]] == {"status": "RUNNING", "node": "ALIVE"}
    assert [app.body["nvidia_gpu"] for app in place.workspace.apps.values()] == [0, 1, 1]
    assert place.workspace.created == 3
    place.make(place.inputs())
    assert place.workspace.created == 3
    place.clean(place.inputs())
    assert place.names == []
    assert place.workspace.files == {"one": {}, "two": {}}


def test_only_the_difference_is_made_and_idle_workers_leave_first(place: Place) -> None:
    place.make(place.inputs(numWorkers=3))
    busy = place.app("workers-2")
    place.ray.work(node(busy))
    made = place.make(place.inputs(numWorkers=1))
    assert place.names == [NAMES[0], "ray.dev.training.workers-2"]
    assert made["joined"] == 1
    place.make(place.inputs(numWorkers=2))
    assert place.names == [NAMES[0], NAMES[1], "ray.dev.training.workers-2"]
    assert place.workspace.created == 5
    assert place.ray.lost == []


def test_a_busy_worker_ends_its_tasks_or_stays_and_the_next_up_continues(place: Place) -> None:
    place.make(place.inputs())
    for name in ("workers-0", "workers-1"):
        place.ray.work(node(place.app(name)))
    with pytest.raises(NotReadyError, match="still run tasks, which neither `up` nor `cml stop` ends"):
        place.make(place.inputs(numWorkers=1, readyTimeout="1s"))
    assert place.names == NAMES
    place.ray.finish()
    place.make(place.inputs(numWorkers=1))
    assert len(place.names) == 2
    assert place.ray.lost == []


def test_applications_that_failed_or_were_edited_are_replaced(place: Place) -> None:
    place.make(place.inputs())
    place.workspace.fail(place.app("workers-1"))
    assert place.make(place.inputs())["joined"] == 2
    assert (place.names, place.workspace.created) == (NAMES, 4)
    place.app("workers-0").body["memory"] = 99
    place.make(place.inputs())
    assert {app.body["memory"] for app in place.workspace.apps.values()} == {16}
    assert place.workspace.created == 5
    # Without its head a cluster is made again.
    place.workspace.fail(place.app("head"))
    place.lines.clear()
    assert place.make(place.inputs())["joined"] == 2
    assert (place.names, place.workspace.created) == (NAMES, 8)
    [said] = [line for line in place.lines if "lost" in line]
    assert said.startswith(
        "training: the head is FAILED, and with it tasks, actors, objects, jobs and what people deployed"
    )
    assert "are lost; addresses, token and what the stack file serves stay; 0 workers have joined" in said


def test_settings_of_a_group_replace_its_workers_and_others_stay(place: Place) -> None:
    groups: list[dict[str, Any]] = [
        {"name": "small", "replicas": 1, "resources": {"cpu": 4, "memory": 16}},
        {"name": "large", "replicas": 1, "resources": {"cpu": 8, "memory": 32}, "project": "two"},
    ]
    changes: dict[str, Any] = {"numWorkers": None, "resources": None, "workerGroups": groups}
    place.make(place.inputs(**changes))
    assert place.app("large-0").project == "two"
    small, large = place.app("small-0").id, place.app("large-0").id
    groups[1]["resources"] = {"cpu": 16, "memory": 32}
    place.make(place.inputs(**changes))
    assert place.app("small-0").id == small
    [replaced] = [app for app in place.workspace.apps.values() if "large" in app.body["name"]]
    assert replaced.id != large
    assert replaced.body["cpu"] == 16
    groups.pop()
    place.make({**place.inputs(**changes), "projects": ["one", "two"]})
    assert [name.rpartition(".")[2] for name in place.names] == ["head", "small-0"]


def test_a_suspended_cluster_has_no_applications(place: Place) -> None:
    place.make(place.inputs())
    assert place.make(place.inputs(suspend=True))["state"] == "suspended"
    assert place.names == []
    assert place.make(place.inputs())["state"] == "ready"


def test_two_clusters_of_two_stacks_and_projects_do_not_touch_each_other(place: Place) -> None:
    first, second = place.inputs(), place.inputs(stack="prod", project="two")
    place.make(first)
    place.make(second, "token-of-another-ray")
    assert len(place.names) == 6
    place.clean(first)
    assert {app.project for app in place.workspace.apps.values()} == {"two"}
    assert place.make(second, "token-of-another-ray")["joined"] == 2


def test_applications_of_another_stack_with_these_names_are_refused(place: Place) -> None:
    place.make(place.inputs())
    with pytest.raises(CmlError, match="this stack did not create it") as refused:
        place.make(place.inputs(), "token-of-somebody-else")
    assert TOKEN not in str(refused.value)
    with pytest.raises(CmlError):
        place.clean(place.inputs(), "token-of-somebody-else")
    assert place.names == NAMES


def test_a_quota_is_reported(place_with: MakePlace) -> None:
    place = place_with(limits=Limits(gpus=1))
    with pytest.raises(QuotaError, match="GPU quota exceeded"):
        place.make(place.inputs())
    place.clean(place.inputs())
    assert place.names == []


def test_a_quota_that_refuses_while_workers_leave_is_reported_once_they_have_left(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def create(*_: Any) -> None:
        raise QuotaError("GPU quota exceeded")

    place.make(place.inputs())
    place.ray.work(node(place.app("workers-1")))
    monkeypatch.setattr(Client, "create", create)
    looks = iter(range(30))

    def finishing(*known: Any) -> Any:
        if next(looks, None) == 10:
            place.ray.finish()
        return decide(*known)

    monkeypatch.setattr(reconcile, "decide", finishing)
    groups = [{"name": "other", "replicas": 1, "resources": {"cpu": 4, "memory": 16}}]
    changes: dict[str, Any] = {"numWorkers": None, "resources": None, "workerGroups": groups, "drainTimeout": "20s"}
    with pytest.raises(QuotaError, match="GPU quota exceeded"):
        place.make(place.inputs(**changes, readyTimeout="5s"))


def test_applications_that_always_fail_end_the_update(place_with: MakePlace) -> None:
    place = place_with(Faults(dead=1.0))
    with pytest.raises(NotReadyError, match=r"ray\.dev\.training\.head has failed 3 times: read its log"):
        place.make(place.inputs())


def test_a_server_that_never_answers_a_creation_ends_the_update(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(*_: Any) -> None:
        raise NotAnsweredError("ml.example.test fails at POST (500)")

    monkeypatch.setattr(Client, "create", create)
    with pytest.raises(NotAnsweredError):
        place.make(place.inputs())
    assert place.names == []


def test_slow_starts_and_ends_are_waited_for(place_with: MakePlace) -> None:
    place = place_with(limits=Limits(starting=0.2, stopping=0.2))
    assert place.make(place.inputs())["joined"] == 2
    place.make(place.inputs(resources={"cpu": 2, "memory": 8, "gpus": 1}, headResources={"cpu": 4, "memory": 16}))
    assert {app.body["cpu"] for app in place.workspace.apps.values()} == {4, 2}
    place.clean(place.inputs())
    assert place.names == []
