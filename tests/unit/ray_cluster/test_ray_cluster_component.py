"""When a RayCluster is provisioned, what a tenant relies on, and what a user reads when it does not become ready."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pulumi
import pytest

from components.cluster import ClusterUnreachableError
from components.ray_cluster.component import RayCluster, RayClusterArgs
from components.ray_cluster.manifests import ray_cluster
from components.ray_cluster.objects import ray_cluster_objects
from components.ray_cluster.readiness import (
    Evidence,
    NotReadyError,
    is_ready,
    reason,
    reasons,
    state_of,
    status_summary,
    until_ready,
    why_not_ready,
)
from components.ray_cluster.rules import valid
from core.body import Body
from core.nodes import NodePool
from testbed.fake_cluster import FakeCluster
from testbed.recorder import Recorder, record

POOLS = (NodePool(pool="a100", count=4, cpu="64", memory="1000Gi", gpus=8, gpu_product="NVIDIA-A100-SXM4-80GB"),)


def provisioned(
    live: dict[str, dict[str, Any]] | None = None,
    **settings: Any,
) -> Recorder:
    entry = {"name": "training", "rayVersion": "2.60.0", "image": "ray:2.60.0", "workers": {"pool": "a100"}, **settings}
    entry = {key: value for key, value in entry.items() if value is not None}

    def program() -> None:
        account = pulumi.CustomResource("kubernetes:core/v1:ServiceAccount", "account", {"kind": "ServiceAccount"})
        operator = pulumi.ComponentResource("ray-platform:index:KubeRayOperator", "operator")
        pulumi.CustomResource("t:t:Guard", "guard", {}, pulumi.ResourceOptions(parent=operator))
        account_name = account.id.apply(lambda _: "ray-deployer")
        objects = list(ray_cluster_objects(valid(entry), ray_cluster(valid(entry), POOLS)))
        args = RayClusterArgs(valid(entry), objects, "team-a", POOLS, account_name)
        RayCluster("team-a-training", args, pulumi.ResourceOptions(depends_on=[operator]))

    return record(program, live)


def test_it_is_one_ray_cluster_in_the_tenants_namespace_after_the_operator_and_the_account() -> None:
    recorder = provisioned()
    for first in ("guard", "account"):
        assert recorder.made_before(first, "team-a-training-ray-cluster")
    made = recorder.registered["team-a-training-ray-cluster"]
    assert (made.type, made.parent) == ("kubernetes:ray.io/v1:RayCluster", "team-a-training")
    assert (made.inputs["metadata"]["namespace"], made.inputs["metadata"]["name"]) == ("team-a", "training")
    pod = made.inputs["spec"]["headGroupSpec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "ray-deployer"


def test_addresses_have_the_ports_that_the_pod_template_sets() -> None:
    ports = [
        {"containerPort": 8265, "$patch": "delete"},
        {"name": "dashboard", "containerPort": 9265},
        {"containerPort": 10001, "$patch": "delete"},
        {"name": "client", "containerPort": 20001},
    ]
    head = {"podTemplate": {"spec": {"containers": [{"name": "ray-head", "ports": ports}]}}}
    found = provisioned(head=head).outputs["team-a-training"]["connection"]
    assert found["rayAddress"] == "ray://training-head-svc.team-a.svc:20001"
    assert found["dashboardUrl"] == found["jobsUrl"] == "http://training-head-svc.team-a.svc:9265"


def test_the_head_is_not_evicted_unless_configured() -> None:
    kept = provisioned().registered["team-a-training-head-disruption-budget"]
    assert (kept.inputs["metadata"], kept.inputs["spec"]["minAvailable"]) == (
        {**kept.inputs["metadata"], "name": "training-head", "namespace": "team-a"},
        1,
    )
    assert kept.inputs["spec"]["selector"] == {
        "matchLabels": {"ray.io/cluster": "training", "ray.io/node-type": "head"}
    }
    assert "team-a-training-head-disruption-budget" not in provisioned(head={"evictable": True}).registered


@pytest.mark.parametrize(
    ("configured", "warnings"),
    [
        ({}, 0),
        ({"authOptions": {"mode": "disabled"}}, 1),
        ({"overrides": {"authOptions": None}}, 1),
        ({"rayVersion": "2.40.0", "image": "ray:2.40.0"}, 1),
        ({"authOptions": {"mode": "disabled"}, "head": {"env": {"RAY_AUTH_MODE": "token"}}}, 0),
    ],
    ids=["by default", "disabled", "overridden", "an older Ray", "by Ray's own variable"],
)
def test_a_cluster_without_token_authentication_causes_a_warning(
    monkeypatch: pytest.MonkeyPatch, configured: dict[str, Any], warnings: int
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda message, **_: shown.append(message))
    provisioned(**configured)
    assert [text.partition(":")[0] for text in shown] == [
        "RayCluster 'training' has no token authentication"
    ] * warnings


def test_outputs_are_addresses_worker_groups_and_the_last_status() -> None:
    status = {
        "state": "ready",
        "head": {"podName": "training-head-x", "podIP": "10.0.0.1", "serviceName": "training-head-svc"},
        "desiredWorkerReplicas": 2,
        "observedGeneration": 3,
        "maxWorkerReplicas": 10,
        "conditions": [
            {"type": "HeadPodReady", "status": "True", "reason": "HeadPodRunningAndReady", "message": "", "x": "y"}
        ],
    }
    known = status_summary({"status": status})
    outputs = provisioned({"team-a-training-ready": {"status": known}}).outputs["team-a-training"]
    assert outputs["connection"] == {
        "namespace": "team-a",
        "headService": "training-head-svc",
        "rayAddress": "ray://training-head-svc.team-a.svc:10001",
        "dashboardUrl": "http://training-head-svc.team-a.svc:8265",
        "jobsUrl": "http://training-head-svc.team-a.svc:8265",
    }
    assert outputs["largest_gpus"] == 8
    assert outputs["worker_groups"][3] == {
        "name": "a100-8gpu",
        "gpus": 8,
        "cpu": "60",
        "memory": "937Gi",
        "maxReplicas": 4,
    }
    assert outputs["state"] == "ready"
    assert outputs["status"]["worker"].items() <= known["worker"].items()
    assert (known["head"]["pod"], known["head"]["service"]) == ("training-head-x", "training-head-svc")
    assert (known["worker"]["desired"], known["worker"]["max"], known["observedGeneration"]) == (2, 10, 3)
    assert known["conditions"][0].keys() == {"type", "status", "reason", "message", "lastTransitionTime"}


def test_it_is_ready_after_the_rollout_of_its_version() -> None:
    recorder = provisioned(updates={"strategy": "immediate"})
    assert recorder.made_before("team-a-training-rollout", "team-a-training-ready")


def test_another_version_is_waited_for_again() -> None:
    made = (provisioned(), provisioned(), provisioned(env={"A": "b"}))
    first, same, other = (each.registered["team-a-training-ready"].inputs["version"] for each in made)
    assert first == same != other


def test_a_head_alone_has_no_worker_groups_and_an_unknown_cluster_no_status() -> None:
    outputs = provisioned(workers=None).outputs["team-a-training"]
    assert (outputs["worker_groups"], outputs["largest_gpus"]) == ([], 0)
    status = status_summary(None)
    assert (status["state"], set(status["head"].values()), status["conditions"]) == (None, {None}, [])


def test_a_status_without_a_state_fails_nothing() -> None:
    known = {"team-a-training-ready": {"status": {"worker": {"desired": 2}}}}
    outputs = provisioned(known).outputs["team-a-training"]
    assert (outputs.get("state"), outputs["status"]["worker"]) == (None, {"desired": 2})


def test_a_wait_ends_with_the_reasons_when_the_cluster_is_not_ready_in_time() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("no usable kubeconfig"))
    assert why_not_ready(cluster, "team-a", "training", "ray-system") == ["no usable kubeconfig"]
    waiting = until_ready(cluster, "team-a", "training", "ray-system", 0, lambda _: None)
    with pytest.raises(NotReadyError, match=r"RayCluster team-a/training is not ready after 0 s:\n  no usable kube"):
        asyncio.run(waiting)


def test_a_wait_does_not_call_a_cluster_ready_whose_head_is_not() -> None:
    status = {"state": "ready", **cluster(("HeadPodReady", "False", "the node is not ready"))["status"]}
    assert state_of({"status": status}) == "with a head that is not ready: the node is not ready"
    assert state_of({"status": {"state": "ready"}}) == "ready"


OPERATOR = ({"metadata": {"name": "kuberay-operator-0"}},)


def cluster(*conditions: tuple[str, str, str]) -> dict[str, Any]:
    reported = [{"type": kind, "status": status, "reason": "r", "message": text} for kind, status, text in conditions]
    return {"status": {"conditions": reported}}


def in_state(state: str | None, *true: str) -> dict[str, Any]:
    """A RayCluster with a state and conditions that are true."""
    return {"status": {"state": state, **cluster(*((kind, "True", "") for kind in true))["status"]}}


def head_pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "training-head"}, "status": status}


def event(message: str, at: str, kind: str = "Warning") -> dict[str, Any]:
    about = {"kind": "Pod", "name": "training-head"}
    return {"type": kind, "reason": "R", "message": message, "involvedObject": about, "lastTimestamp": at}


def waiting(container: str, reason: str, message: str | None = None) -> dict[str, Any]:
    return {"name": container, "state": {"waiting": {"reason": reason, **({"message": message} if message else {})}}}


def seen(*conditions: tuple[str, str, str], pod: dict[str, Any] | None = None, **more: Any) -> Evidence:
    """What is seen of a cluster with these conditions, its head, and a running operator."""
    return Evidence(cluster(*conditions), (pod,) if pod else (), **{"operator_pods": OPERATOR, **more})


UNSCHEDULED = head_pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/4 nodes are available"}])
WITHOUT_REDIS = {"name": "redis-gateway", "started": False, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
CRASHING = {
    **waiting("redis-gateway", "CrashLoopBackOff", "back-off 20s"),
    "lastState": {"terminated": {"message": "redis-gateway: REDIS_GATEWAY_HOLD_SECONDS: too long\n"}},
}
NOT_READY = "pod training-head, container redis-gateway: runs, but is not ready, and Ray waits for it:"
AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
UNREACHABLE = 'failed to do request: Head "https://registry.example/ray": dial tcp: network is unreachable'
BACK_OFF = f'Back-off pulling image "ray:0": ErrImagePull: {UNREACHABLE}'


def made(at: datetime) -> Body:
    """A pod of the operator."""
    return {"metadata": {"name": "kuberay-operator-0", "creationTimestamp": at.isoformat()}}


def failed(message: str, about: str = "training-head") -> Body:
    """An event of the kubelet."""
    subject = {"kind": "Pod", "name": about}
    return {"type": "Warning", "reason": "Failed", "message": message, "involvedObject": subject, "metadata": {}}


NOT_LOOKED = "the operator has not looked at the RayCluster: does it run, and does it watch the namespace?"


@pytest.mark.parametrize(
    ("evidence", "lines"),
    [
        (
            seen(("HeadPodReady", "False", "containers not ready"), pod=UNSCHEDULED),
            [
                "RayCluster: HeadPodReady is False: containers not ready",
                "pod training-head is not scheduled: 0/4 nodes are available",
            ],
        ),
        (  # A warning that repeats the status of a pod is omitted.
            seen(pod=UNSCHEDULED, events=(event("0/4 nodes are available", "2026-01-01T00:00:00Z"),)),
            ["pod training-head is not scheduled: 0/4 nodes are available"],
        ),
        (
            seen(pod=head_pod(containerStatuses=[waiting("ray-head", "ImagePullBackOff", 'Back-off "ray:0"')])),
            ['pod training-head, container ray-head: ImagePullBackOff: Back-off "ray:0"'],
        ),
        (
            seen(pod=head_pod(containerStatuses=[waiting("ray-head", "ContainerCreating")])),
            ["no event and no condition has the reason: read the operator's log"],
        ),
        (
            seen(
                pod=head_pod(initContainerStatuses=[WITHOUT_REDIS]),
                logs={
                    ("training-head", "redis-gateway"): '{"message": "listening"}\n'
                    '{"level": "warning", "message": "not ready: s-0:26379: WRONGPASS"}\n'
                },
            ),
            [f"{NOT_READY} not ready: s-0:26379: WRONGPASS"],
        ),
        (seen(pod=head_pod(initContainerStatuses=[WITHOUT_REDIS])), [f"{NOT_READY} read its log"]),
        (
            seen(pod=head_pod(initContainerStatuses=[CRASHING])),
            [
                "pod training-head, container redis-gateway: CrashLoopBackOff: back-off 20s; it ended with: "
                "redis-gateway: REDIS_GATEWAY_HOLD_SECONDS: too long"
            ],
        ),
        (  # Only warnings are reported, newest first.
            seen(
                events=(
                    event("older", "2026-01-01T00:00:00Z"),
                    event("newer", "2026-01-02T00:00:00Z"),
                    event("scheduled", "2026-01-03T00:00:00Z", kind="Normal"),
                )
            ),
            ["Pod training-head: R: newer", "Pod training-head: R: older"],
        ),
        (Evidence({}), ["the operator has no pod: is its Deployment gone, scaled down, or in another namespace?"]),
        (
            Evidence({}, operator_pods=(made(AT - timedelta(hours=1)), made(AT)), at=AT),
            [NOT_LOOKED],
        ),
        (
            Evidence({}, operator_pods=(made(AT - timedelta(seconds=12)),), at=AT),
            ["the operator has not looked at the RayCluster: its pod started 12 s ago, and soon does"],
        ),
        (  # An image that cannot be pulled is reported once.
            seen(
                ("HeadPodReady", "False", f"containers with unready status: [ray-head]; ray-head: {BACK_OFF}"),
                pod=head_pod(containerStatuses=[waiting("ray-head", "ImagePullBackOff", BACK_OFF)]),
                events=(
                    failed("Error: ErrImagePull"),
                    failed("Error: ImagePullBackOff"),
                    failed(f'Failed to pull image "ray:0": {UNREACHABLE}'),
                    failed('Failed to pull image "ray:0": another error'),
                    failed("Error: ErrImagePull", about="training-worker"),
                ),
            ),
            [
                f"pod training-head, container ray-head: ImagePullBackOff: {BACK_OFF}",
                'Pod training-head: Failed: Failed to pull image "ray:0": another error',
                "Pod training-worker: Failed: Error: ErrImagePull",
            ],
        ),
        (Evidence({}, operator_pods=OPERATOR), [NOT_LOOKED]),
        (Evidence({}, operator_pods=None), [NOT_LOOKED]),
        (
            seen(("HeadPodReady", "False", "no pod"), operator_pods=None),
            ["RayCluster: HeadPodReady is False: no pod"],
        ),
        (Evidence(None), ["it does not exist: it was deleted after its creation"]),
        (
            seen(("ReplicaFailure", "True", "pods is forbidden: exceeded quota")),
            ["RayCluster: ReplicaFailure is True: pods is forbidden: exceeded quota"],
        ),
    ],
)
def test_the_reasons_why_a_cluster_is_not_ready_are_reported(evidence: Evidence, lines: list[str]) -> None:
    assert reasons(evidence) == lines


def test_repeated_warnings_are_reported_once_and_long_lists_are_cut() -> None:
    events = tuple(event(f"number {second % 30}", f"2026-01-01T00:00:{second:02}Z") for second in range(60))
    lines = reasons(Evidence(cluster(), (), events, OPERATOR))
    assert len(lines) == len(set(lines)) == 12
    assert lines[0] == "Pod training-head: R: number 29"


@pytest.mark.parametrize(
    ("spec", "state", "true", "ready"),
    [
        ({}, "ready", {"HeadPodReady", "RayClusterProvisioned"}, True),
        ({}, "ready", {"RayClusterProvisioned"}, False),
        ({}, None, {"HeadPodReady", "RayClusterProvisioned"}, False),  # Workers are missing.
        ({}, "suspended", {"RayClusterSuspended"}, False),
        ({"suspend": True}, "suspended", {"RayClusterSuspended"}, True),
        ({"suspend": True}, "ready", {"HeadPodReady", "RayClusterProvisioned"}, False),
    ],
)
def test_a_cluster_is_ready_in_the_state_of_its_spec(
    spec: dict[str, Any], state: str | None, true: set[str], ready: bool
) -> None:
    assert is_ready({**in_state(state, *true), "spec": spec}) == ready


def test_a_cluster_that_a_queue_has_suspended_is_waited_for() -> None:
    waiting = {**in_state("suspended", "RayClusterSuspended"), "spec": {"suspend": True}}
    assert not is_ready(waiting, queued=True)
    running = in_state("ready", "HeadPodReady", "RayClusterProvisioned")
    assert is_ready({**running, "spec": {"suspend": False}}, queued=True)


WORKLOAD = {
    "metadata": {"creationTimestamp": "2026-01-01T00:00:02Z"},
    "status": {
        "conditions": [{"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "8 more needed"}]
    },
}


def test_the_reason_to_wait_in_a_queue_is_reported_first() -> None:
    suspended = cluster(("RayClusterSuspended", "True", "suspended"))
    assert (
        reasons(Evidence(suspended, (), (), OPERATOR, waits="8 more needed"))[0]
        == "it waits in its queue: 8 more needed"
    )


def test_a_queues_reason_is_that_of_the_newest_workload_that_is_not_admitted() -> None:
    older = {"metadata": {"creationTimestamp": "2026-01-01T00:00:01Z"}, "status": {}}
    assert reason([WORKLOAD, older]) == "8 more needed"
    assert reason([older]) is None
    assert reason([]) is None
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "reserved"}
    checks = {"type": "Admitted", "status": "False", "reason": "NoChecks", "message": "checks are pending"}
    assert reason([{**WORKLOAD, "status": {"conditions": [reserved, checks]}}]) == "checks are pending"
    assert reason([{**WORKLOAD, "status": {"conditions": [reserved]}}]) is None
