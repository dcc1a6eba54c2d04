"""What a user reads when a RayCluster does not become ready."""

from typing import Any

import pytest

from components.ray_cluster.readiness import Evidence, is_ready, reasons, why_not_ready
from components.ray_cluster.workload import reason

pytestmark = pytest.mark.unit

OPERATOR = ({"metadata": {"name": "kuberay-operator-0"}},)


def cluster(*conditions: tuple[str, str, str]) -> dict[str, Any]:
    reported = [{"type": kind, "status": status, "reason": "r", "message": text} for kind, status, text in conditions]
    return {"status": {"conditions": reported}}


def head_pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "training-head"}, "status": status}


def event(message: str, at: str, kind: str = "Warning") -> dict[str, Any]:
    about = {"kind": "Pod", "name": "training-head"}
    return {"type": kind, "reason": "R", "message": message, "involvedObject": about, "lastTimestamp": at}


def test_a_pod_that_fits_nowhere_is_named_with_the_schedulers_reason() -> None:
    pod = head_pod(
        conditions=[{"type": "PodScheduled", "status": "False", "message": "0/4 nodes: Insufficient memory."}]
    )
    lines = reasons(Evidence(cluster(("HeadPodReady", "False", "containers not ready")), (pod,), (), OPERATOR))
    assert lines == [
        "RayCluster: HeadPodReady is False: containers not ready",
        "pod training-head is not scheduled: 0/4 nodes: Insufficient memory.",
    ]


def test_an_image_that_cannot_be_pulled_is_said() -> None:
    waiting = {"name": "ray-head", "state": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off "ray:0"'}}}
    lines = reasons(Evidence(cluster(), (head_pod(containerStatuses=[waiting]),), (), OPERATOR))
    assert lines == ['pod training-head, container ray-head: ImagePullBackOff: Back-off "ray:0"']


def test_a_pod_that_is_merely_starting_is_no_reason() -> None:
    starting = {"name": "ray-head", "state": {"waiting": {"reason": "ContainerCreating"}}}
    lines = reasons(Evidence(cluster(), (head_pod(containerStatuses=[starting]),), (), OPERATOR))
    assert lines == ["no event and no condition has the reason: read the operator's log"]


def test_a_gateway_without_redis_is_told_with_its_own_reason() -> None:
    starting = {"name": "redis-gateway", "started": False, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
    log = '{"message": "listening"}\n{"level": "warning", "message": "not ready: s-0:26379 says: WRONGPASS"}\n'
    pod = head_pod(initContainerStatuses=[starting])
    logs = {("training-head", "redis-gateway"): log}
    expected = "pod training-head, container redis-gateway: runs, but is not ready, and Ray waits for it: "
    assert reasons(Evidence(cluster(), (pod,), (), OPERATOR, logs)) == [
        f"{expected}not ready: s-0:26379 says: WRONGPASS"
    ]
    assert reasons(Evidence(cluster(), (pod,), (), OPERATOR)) == [f"{expected}read its log"]


def test_what_a_container_that_ends_again_and_again_said_last_is_told() -> None:
    looping = {
        "name": "redis-gateway",
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s"}},
        "lastState": {"terminated": {"message": "redis-gateway: REDIS_GATEWAY_HOLD_SECONDS: too long\n"}},
    }
    [line] = reasons(Evidence(cluster(), (head_pod(initContainerStatuses=[looping]),), (), OPERATOR))
    assert line.endswith("back-off 20s; it ended with: redis-gateway: REDIS_GATEWAY_HOLD_SECONDS: too long")


def test_warnings_come_newest_first_and_other_events_not_at_all() -> None:
    events = (
        event("older", "2026-01-01T00:00:00Z"),
        event("newer", "2026-01-02T00:00:00Z"),
        event("scheduled", "2026-01-03T00:00:00Z", kind="Normal"),
    )
    assert reasons(Evidence(cluster(), (), events, OPERATOR)) == [
        "Pod training-head: R: newer",
        "Pod training-head: R: older",
    ]


def test_a_warning_that_a_pods_status_says_already_is_not_said_again() -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}
    warning = event("0/4 nodes are available", "2026-01-01T00:00:00Z")
    lines = reasons(Evidence(cluster(), (head_pod(conditions=[unscheduled]),), (warning,), OPERATOR))
    assert lines == ["pod training-head is not scheduled: 0/4 nodes are available"]


def test_repeated_warnings_are_said_once_and_many_are_cut() -> None:
    events = tuple(event(f"number {second % 30}", f"2026-01-01T00:00:{second:02}Z") for second in range(60))
    lines = reasons(Evidence(cluster(), (), events, OPERATOR))
    assert len(lines) == len(set(lines)) == 12
    assert lines[0] == "Pod training-head: R: number 29"


def test_an_operator_that_is_not_there_or_does_not_look_is_said() -> None:
    assert reasons(Evidence({}, (), (), ())) == [
        "the operator has no pod: is its Deployment scaled down, or in another namespace?"
    ]
    assert reasons(Evidence({}, (), (), OPERATOR)) == [
        "the operator has not looked at the RayCluster: does it run, and does it watch the namespace?"
    ]


def test_who_may_not_see_the_operator_is_told_what_can_be_told_without() -> None:
    assert reasons(Evidence({}, (), (), None)) == [
        "the operator has not looked at the RayCluster: does it run, and does it watch the namespace?"
    ]
    assert reasons(Evidence(cluster(("HeadPodReady", "False", "no pod")), (), (), None)) == [
        "RayCluster: HeadPodReady is False: no pod"
    ]


def test_a_failure_to_make_pods_is_said() -> None:
    failed = cluster(("ReplicaFailure", "True", 'pods "training-head" is forbidden: exceeded quota'))
    assert reasons(Evidence(failed, (), (), OPERATOR))[0].endswith("exceeded quota")


def test_a_cluster_that_is_gone_is_said() -> None:
    assert reasons(Evidence(None)) == ["it does not exist: it was deleted after its creation"]


@pytest.mark.parametrize(
    ("spec", "true", "ready"),
    [
        ({}, {"HeadPodReady", "RayClusterProvisioned"}, True),
        ({}, {"RayClusterProvisioned"}, False),
        ({}, {"RayClusterSuspended"}, False),
        ({"suspend": True}, {"RayClusterSuspended"}, True),
        ({"suspend": True}, {"HeadPodReady", "RayClusterProvisioned"}, False),
    ],
)
def test_a_cluster_is_ready_when_it_is_as_its_spec_wants_it(spec: dict[str, Any], true: set[str], ready: bool) -> None:
    assert is_ready({**cluster(*((kind, "True", "") for kind in true)), "spec": spec}) == ready


def test_a_cluster_that_a_queue_has_suspended_is_waited_for() -> None:
    waiting = {**cluster(("RayClusterSuspended", "True", "")), "spec": {"suspend": True}}
    assert not is_ready(waiting, queued=True)
    running = cluster(("HeadPodReady", "True", ""), ("RayClusterProvisioned", "True", ""))
    assert is_ready({**running, "spec": {"suspend": False}}, queued=True)


WORKLOAD = {
    "metadata": {"creationTimestamp": "2026-01-01T00:00:02Z"},
    "status": {
        "conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "8 more needed"}]
    },
}


def test_why_a_cluster_waits_in_its_queue_is_said_first() -> None:
    suspended = cluster(("RayClusterSuspended", "True", "suspended"))
    assert (
        reasons(Evidence(suspended, (), (), OPERATOR, waits="8 more needed"))[0]
        == "it waits in its queue: 8 more needed"
    )


def test_a_queues_reason_is_that_of_the_newest_workload_which_is_not_let_in() -> None:
    older = {"metadata": {"creationTimestamp": "2026-01-01T00:00:01Z"}, "status": {}}
    assert reason([WORKLOAD, older]) == "8 more needed"
    assert reason([older]) is None
    assert reason([]) is None
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "reserved"}
    checks = {"type": "Admitted", "status": "False", "reason": "NoChecks", "message": "checks are pending"}
    assert reason([{**WORKLOAD, "status": {"conditions": [reserved, checks]}}]) == "checks are pending"
    assert reason([{**WORKLOAD, "status": {"conditions": [reserved]}}]) is None


def test_an_unreachable_api_server_is_the_reason(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    [line] = why_not_ready("no-such-context", "team-a", "training", "ray-system")
    assert line.startswith("no usable kubeconfig")
