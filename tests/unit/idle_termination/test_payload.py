"""What the program decides about a RayCluster, by what Kubernetes and Ray report of it."""

import time
import urllib.error
from collections.abc import Callable
from typing import Any

import pytest

from components.payloads import idle_termination
from components.payloads.idle_termination import FIELD_MANAGER, Controller, Use, Verdict, in_use, use, verdict
from components.payloads.idle_termination import job_that_waits as job_of

READY_AT = 1767261600
"""2026-01-01T10:00:00Z."""

NOBODY = {"driver": {"is_active": "INACTIVE", "reason": None, "timestamp": 1.0, "last_activity_at": None}}
UNUSED = Use("")
TIMEOUT = 600


def cluster(ready: str = "True", **spec: Any) -> dict[str, Any]:
    condition = {"type": "HeadPodReady", "status": ready, "lastTransitionTime": "2026-01-01T10:00:00Z"}
    return {
        "metadata": {"name": "training", "resourceVersion": "7"},
        "spec": spec,
        "status": {"conditions": [condition]},
    }


def suspended(manager: str = FIELD_MANAGER) -> dict[str, Any]:
    found = cluster("False", suspend=True)
    owned: dict[str, Any] = {"f:spec": {"f:suspend": {}}}
    found["metadata"]["managedFields"] = [
        {"manager": "pulumi-ray-platform-dev", "time": "2026-01-01T09:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": manager, "time": "2026-01-01T11:00:00Z", "fieldsV1": owned},
    ]
    return found


def job(status: str = "", suspend: bool = False, selects: str = "training") -> dict[str, Any]:
    spec = {"clusterSelector": {"ray.io/cluster": selects}, "suspend": suspend}
    return {"metadata": {"name": "nightly"}, "spec": spec, "status": {"jobDeploymentStatus": status}}


def decided(
    found: dict[str, Any] | None, after: float, answer: Use | Exception = UNUSED, waits: str = "", used: float = 0
) -> Verdict:
    """The verdict so many seconds after the head became ready."""

    def ask() -> Use:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return verdict(found, TIMEOUT, waits, used, READY_AT + after, ask)


def test_an_idle_cluster_is_suspended_after_the_timeout_since_its_last_use() -> None:
    assert decided(cluster(), TIMEOUT - 1).suspend is None
    assert decided(cluster(), TIMEOUT).suspend is True
    assert decided(cluster(), TIMEOUT + 50, Use("", until=READY_AT + 100)).suspend is None
    assert decided(cluster(), TIMEOUT + 100, Use("", until=READY_AT + 100)).suspend is True
    assert decided(cluster(), TIMEOUT + 50, used=READY_AT + 100).suspend is None


def test_a_used_cluster_stays() -> None:
    found = decided(cluster(), 10 * TIMEOUT, Use("driver: Number of active drivers: 1"))
    assert (found.suspend, found.starts) == (None, True)
    assert found.line == "is used: driver: Number of active drivers: 1"


@pytest.mark.parametrize("error", [ConnectionRefusedError("refused"), ValueError("no JSON"), KeyError("data")])
def test_what_cannot_be_read_counts_as_use(error: Exception) -> None:
    found = decided(cluster(), 10 * TIMEOUT, error)
    assert (found.suspend, found.starts) == (None, True)
    assert "Ray cannot be asked" in found.line


def test_a_cluster_that_starts_or_is_deleted_is_left_alone() -> None:
    deleted = cluster()
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    for each in (None, deleted, cluster("False"), {**cluster(), "status": {}}):
        assert decided(each, 10 * TIMEOUT).suspend is None


def test_a_ray_job_keeps_its_cluster_and_wakes_it() -> None:
    assert decided(cluster(), 10 * TIMEOUT, waits="nightly") == Verdict("is used: RayJob nightly", starts=True)
    assert decided(suspended(), 10 * TIMEOUT, waits="nightly").suspend is False
    assert decided(suspended(), 10 * TIMEOUT) == Verdict("has been resting since 2026-01-01T11:00:00Z", starts=True)


def test_a_cluster_that_somebody_else_suspended_is_not_woken() -> None:
    assert decided(suspended("kubectl-patch"), 0, waits="nightly") == Verdict(
        "is suspended by somebody else", starts=True
    )


def test_only_a_ray_job_that_needs_the_cluster_counts() -> None:
    for state in ("", "Initializing", "Running", "Waiting", "Retrying"):
        assert job_of([job(state)], "training") == "nightly"
    for state in ("Complete", "Failed", "ValidationFailed", "Suspended"):
        assert job_of([job(state)], "training") == ""
    own = {"metadata": {"name": "own"}, "spec": {"rayClusterSpec": {}}}
    assert job_of([job(suspend=True), job(selects="other"), own], "training") == ""


def test_what_is_a_use_of_a_cluster_and_what_is_not() -> None:
    assert use(NOBODY, [], []) == Use("")
    driver = {"driver": {"is_active": "ACTIVE", "reason": "Number of active drivers: 2", "last_activity_at": 50.0}}
    assert use(driver, [], []) == Use("driver: Number of active drivers: 2", 50)
    assert use({**NOBODY, "notebooks": {"is_active": "ERROR", "reason": None}}, [], []).why == "notebooks: ERROR"
    pending = {"type": "SUBMISSION", "submission_id": "raysubmit_1", "status": "PENDING"}
    assert use(NOBODY, [pending], []).why == "job raysubmit_1 is PENDING"
    detached = {"class_name": "ServeController", "ray_namespace": "serve"}
    assert use(NOBODY, [], [detached]).why == "1 actors, such as ServeController in namespace serve"
    failed = {"type": "SUBMISSION", "submission_id": "raysubmit_1", "status": "FAILED", "end_time": 90_000}
    of_driver = {"type": "DRIVER", "submission_id": None, "status": "SUCCEEDED", "end_time": 95_000}
    ended = {"driver": {**NOBODY["driver"], "last_activity_at": 80.0}}
    assert use(ended, [failed, of_driver], []) == Use("", until=90)
    internal = {"class_name": "Dashboard", "ray_namespace": "_ray_internal_dashboard"}
    assert use(NOBODY, [], [internal]).why == ""
    assert use(NOBODY, [], [internal] * 10_000).why == "more actors than Ray lists (10000)"


def test_a_list_of_actors_in_part_is_not_usable() -> None:
    def ask(url: str, _token: str | None) -> Any:
        return {"data": {"result": {"result": [], "partial_failure_warning": "GCS is slow"}}} if "actors" in url else []

    with pytest.raises(ValueError, match="GCS is slow"):
        in_use("http://head", None, ask)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], list[tuple[str, dict[str, Any]]]]:
    """Answers by the end of the URL instead of servers; a list of what was sent."""

    def with_answers(answers: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        sent: list[tuple[str, dict[str, Any]]] = []

        def ask(url: str, _token: str | None, **request: Any) -> Any:
            if request:
                sent.append((url, request))
                return {}
            answer = next(each for part, each in answers.items() if part in url)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(idle_termination, "_ask", ask)
        monkeypatch.setattr(time, "time", lambda: READY_AT + TIMEOUT + 1.0)
        return sent

    return with_answers


IDLE = {
    "/rayjobs": {"items": []},
    "/rayclusters/training": cluster(),
    "/actors": {"data": {"result": {"result": []}}},
    "/component_activities": NOBODY,
    "/jobs/": [],
}
TRAINING = {"name": "training", "url": "http://head", "timeoutSeconds": TIMEOUT, "tokenFile": None}


def test_it_patches_the_version_that_it_has_read(asked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sent = asked(IDLE)
    controller = Controller("https://api", [TRAINING])
    controller.look()
    ((url, request),) = sent
    assert url == f"https://api/rayclusters/training?fieldManager={FIELD_MANAGER}"
    assert request["method"] == "PATCH"
    assert request["data"] == b'{"metadata": {"resourceVersion": "7"}, "spec": {"suspend": true}}'
    assert capsys.readouterr().out == "RayCluster training is suspended: idle for 601 seconds\n"


def test_a_cluster_that_is_woken_at_once_has_its_whole_time_again(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its old head is still ready, and idle."""
    sent = asked(IDLE)
    controller = Controller("https://api", [TRAINING])
    for after, patches in ((1, 1), (11, 1), (TIMEOUT, 1), (TIMEOUT + 1, 2)):
        monkeypatch.setattr(time, "time", lambda after=after: READY_AT + TIMEOUT + float(after))
        controller.look()
        assert len(sent) == patches


def test_a_cluster_that_becomes_ready_has_its_whole_time_by_a_clock_that_is_ahead(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = {**IDLE, "/rayclusters/training": cluster("False")}
    sent, controller, ahead = asked(waiting), Controller("https://api", [TRAINING]), READY_AT + 10 * TIMEOUT
    for after, patches in ((0, 0), (10, 0), (TIMEOUT - 1, 0), (TIMEOUT, 1)):
        monkeypatch.setattr(time, "time", lambda after=after: ahead + float(after))
        controller.look()
        assert len(sent) == patches
        waiting["/rayclusters/training"] = cluster()


def test_a_failure_concerns_one_cluster_and_is_reported_once(asked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    refused = urllib.error.HTTPError("", 403, "Forbidden", {}, None)  # type: ignore[arg-type]
    sent = asked({"/rayclusters/other": refused, **IDLE})
    controller = Controller("https://api", [{**TRAINING, "name": "other"}, TRAINING])
    controller.look()
    controller.look()
    assert [url.partition("?")[0] for url, _ in sent] == ["https://api/rayclusters/training"]
    assert capsys.readouterr().out.count("RayCluster other cannot be read or changed: HTTP Error 403: Forbidden\n") == 1


def test_a_missing_cluster_is_no_failure(asked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    missing = urllib.error.HTTPError("", 404, "Not Found", {}, None)  # type: ignore[arg-type]
    assert asked({**IDLE, "/rayclusters/training": missing}) == []
    Controller("https://api", [TRAINING]).look()
    assert capsys.readouterr().out == "RayCluster training does not exist\n"
