"""The status of RayJobs and RayServices, and why they do not run."""

from typing import Any

import pytest

from components.queues.settings import Backend
from components.ray_service.applications import Application
from core.body import Body
from stacks.commands.status.clusters import ClusterStatus
from stacks.commands.status.owners import JobStatus, ServiceStatus, job_status, service_status
from stacks.commands.status.snapshot import Live
from tests.unit.status.live import (
    MADE,
    NO_ROOM,
    NOW,
    OPERATOR,
    READY,
    STARTING,
    UNSCHEDULED,
    cluster,
    condition,
    found,
    metadata,
    owned,
    pod,
    ray_cluster,
    warning,
)

OWN = "nightly-x7k"
"""The RayCluster of the job."""


def job(deployment: str = "", job: str = "", spec: dict[str, Any] | None = None, **status: Any) -> Body:
    known = {"jobDeploymentStatus": deployment, "jobStatus": job, "rayClusterName": OWN, **status}
    return {"metadata": metadata("nightly"), "spec": spec or {}, "status": known if deployment else {}}


def shown(
    body: Body, *clusters: ClusterStatus, backend: Backend | None = None, unreadable: Any = None, **objects: Any
) -> JobStatus:
    live = Live(NOW, {}, operator_pods=OPERATOR)
    return job_status(body, found(unreadable, **objects), live, backend, {each.name: each for each in clusters})


STARTED: dict[str, Any] = {"startTime": "2026-01-01T11:00:00Z"}


def test_a_running_job_has_its_cluster_and_its_time_so_far() -> None:
    runs = shown(
        job("Running", "RUNNING", message="Job is currently running.", **STARTED), cluster(ray_cluster(OWN, *READY))
    )
    assert (runs.ok, runs.deployment, runs.job, runs.cluster) == (True, "Running", "RUNNING", OWN)
    assert (runs.age, runs.since, runs.duration, runs.reasons) == (7200, "2026-01-01T11:00:00Z", 3600, ())


def test_a_run_is_shown_with_its_template_and_who_runs_it() -> None:
    run = job("Running", "RUNNING")
    run["metadata"]["labels"] = {"ray-platform/job-template": "finetune"}
    assert shown(run).owner == "template finetune"
    run["metadata"]["annotations"] = {"ray-platform/created-by": "alice"}
    assert shown(run).owner == "template finetune, alice"


def test_the_duration_of_an_ended_job_is_up_to_its_end() -> None:
    ended = shown(job("Complete", "SUCCEEDED", **STARTED, endTime="2026-01-01T11:00:30Z"))
    assert (ended.ok, ended.duration) == (True, 30)


@pytest.mark.parametrize(
    ("state", "reason", "message"),
    [
        ("Failed", "AppFailed", "Job entrypoint command failed with exit code 1"),
        ("Failed", "DeadlineExceeded", "The RayJob has passed the activeDeadlineSeconds"),
        ("ValidationFailed", "ValidationFailed", "The RayJob spec is invalid"),
    ],
)
def test_a_failed_job_reports_kuberays_reason(state: str, reason: str, message: str) -> None:
    failed = shown(job(state, "FAILED", reason=reason, message=message))
    assert (failed.ok, failed.reason, failed.message) == (False, reason, message)
    assert failed.reasons == (f"{reason}: {message}",)


def test_a_job_in_initializing_has_the_reasons_of_its_cluster() -> None:
    starting = cluster(ray_cluster(OWN, *STARTING), pod("head", OWN, node=None))
    stuck = shown(job("Initializing"), starting, events=[warning("nightly", "failed to create")])
    assert not stuck.ok
    assert stuck.reasons == (
        f"its RayCluster {OWN} is not ready: HeadPodReady is False: containers not ready",
        f"its RayCluster {OWN} is not ready: RayClusterProvisioned is False: no",
        f"its RayCluster {OWN} is not ready: pod head is not scheduled: {NO_ROOM}",
        "RayJob nightly: R: failed to create",
    )


def test_a_job_whose_cluster_does_not_exist() -> None:
    assert shown(job("Initializing")).reasons == (f"its RayCluster {OWN} does not exist",)


def test_a_gang_of_volcano_belongs_to_the_job() -> None:
    gang = {
        "metadata": metadata("ray-nightly-pg", ownerReferences=owned("RayJob", "nightly")),
        "status": {"phase": "Inqueue", "conditions": [condition("Unschedulable", "True", "2/2 tasks unschedulable")]},
    }
    stuck = shown(job("Initializing"), cluster(ray_cluster(OWN, *STARTING)), backend="volcano", podgroups=[gang])
    assert stuck.reasons[0] == "it waits in its queue: 2/2 tasks unschedulable"


def test_volcano_starts_no_job_on_an_existing_cluster() -> None:
    selecting = job("Initializing", spec={"clusterSelector": {"ray.io/cluster": "training"}})
    assert shown(selecting, cluster(ray_cluster(OWN, *READY)), backend="volcano").reasons == (
        "with Volcano, KubeRay starts no RayJob on an existing RayCluster: submit it there (`ray job submit`)",
    )
    assert shown(selecting, cluster(ray_cluster(OWN, *READY)), backend="kueue").reasons == ()


def test_a_job_that_kueue_suspends_waits_and_one_that_its_spec_suspends_does_not() -> None:
    workload = {
        "metadata": metadata("workload", ownerReferences=owned("RayJob", "nightly")),
        "status": {"conditions": [condition("QuotaReserved", "False", "8 more needed")]},
    }
    suspended = job("Suspended", spec={"suspend": True}, rayClusterName="")
    queued = {**suspended, "metadata": metadata("nightly", labels={"kueue.x-k8s.io/queue-name": "research"})}
    waits = shown(queued, backend="kueue", workloads=[workload])
    assert (waits.ok, waits.reasons) == (False, ("it waits in its queue: 8 more needed",))
    hidden = shown(queued, backend="kueue", unreadable={"workloads": "forbidden"})
    assert hidden.reasons == ("it waits in its queue: its Workload cannot be read: forbidden",)
    assert (shown(suspended, backend="kueue").ok, shown(suspended).reasons) == (True, ())


def test_a_submitter_that_does_not_start_is_the_reason() -> None:
    waiting = {
        "name": "ray-job-submitter",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
    }
    submitter = {
        "metadata": metadata("nightly-abc", labels={"batch.kubernetes.io/job-name": "nightly"}),
        "status": {"phase": "Pending", "containerStatuses": [waiting]},
    }
    ready = cluster(ray_cluster(OWN, *READY))
    submitted = shown(job("Running", "PENDING"), ready, pods=[submitter])
    assert not submitted.ok
    assert submitted.reasons == ("pod nightly-abc, container ray-job-submitter: ImagePullBackOff: no such image",)
    assert shown(job("Running", "RUNNING"), ready, pods=[submitter]).ok
    other = {**submitter, "metadata": metadata("other-abc", labels={"batch.kubernetes.io/job-name": "other"})}
    assert shown(job("Running", "PENDING"), ready, pods=[{**other, "status": UNSCHEDULED}]).ok


def test_an_interactive_job_waits_for_somebody() -> None:
    waits = shown(job("Waiting"))
    assert waits.ok
    assert waits.reasons[0].startswith("InteractiveMode: it waits until somebody submits the job")


def test_a_job_that_the_operator_has_not_seen_is_new() -> None:
    new = shown(job())
    assert (new.deployment, new.job, new.cluster, new.since, new.duration) == ("New", None, None, None, None)
    assert new.reasons == ("the operator has not looked at it: does it run, and does it watch the namespace?",)


@pytest.mark.parametrize("state", ["Retrying", "Suspending", "Initializing"])
def test_a_job_between_two_states_is_not_as_desired(state: str) -> None:
    assert not shown(job(state, rayClusterName="")).ok


SERVES = {
    "serviceStatus": "Running",
    "numServeEndpoints": 2,
    "conditions": [condition("Ready", "True"), condition("UpgradeInProgress", "False")],
}


def on(name: str, status: str, message: str = "", **deployments: str) -> dict[str, Any]:
    """The status of a service on one of its RayClusters, with an application `chat`."""
    states = {each: {"status": state} for each, state in deployments.items()}
    application = {"status": status, "message": message, "serveDeploymentStatuses": states}
    return {"rayClusterName": name, "applicationStatuses": {"chat": application}}


def service(**status: Any) -> Body:
    return {"metadata": metadata("chat"), "spec": {}, "status": status}


def service_shown(body: Body, *clusters: ClusterStatus, **objects: Any) -> ServiceStatus:
    return service_status(body, found(**objects), Live(NOW, {}), {each.name: each for each in clusters})


def test_a_service_that_serves() -> None:
    serves = service_shown(service(**SERVES, activeServiceStatus=on("chat-1", "RUNNING", model="HEALTHY")))
    assert (serves.ok, serves.status, serves.endpoints, serves.age) == (True, "Running", 2, 7200)
    assert serves.clusters == {"active": "chat-1"}
    assert serves.applications == (Application("chat", "active", "RUNNING", "", (("model", "HEALTHY", ""),)),)
    assert serves.reasons == ()


def test_an_application_that_fails_has_its_message_and_its_deployments() -> None:
    status = on("chat-1", "DEPLOY_FAILED", "No module named 'model'", model="UNHEALTHY", router="HEALTHY")
    fails = service_shown(service(**SERVES, activeServiceStatus=status))
    assert not fails.ok
    assert fails.reasons == (
        "application chat (active) is DEPLOY_FAILED: No module named 'model'",
        "application chat (active), deployment model is UNHEALTHY: no message",
    )


def test_a_service_that_does_not_serve_names_condition_cluster_and_warning() -> None:
    waits = service(
        conditions=[condition("Ready", "False", "RayService is initializing", "Initializing")],
        pendingServiceStatus={"rayClusterName": "chat-1"},
    )
    event = warning("chat", "invalid serveConfigV2", kind="RayService")
    found_out = service_shown(waits, cluster(ray_cluster("chat-1", *STARTING)), events=[event])
    assert not found_out.ok
    assert found_out.clusters == {"pending": "chat-1"}
    assert found_out.reasons[0] == "Ready is False: Initializing: RayService is initializing"
    assert (
        "its pending RayCluster chat-1 is not ready: HeadPodReady is False: containers not ready" in found_out.reasons
    )
    assert found_out.reasons[-1] == "RayService chat: R: invalid serveConfigV2"


def test_a_service_serves_while_its_update_is_not_ready() -> None:
    updates = service(
        **SERVES,
        activeServiceStatus=on("chat-1", "RUNNING"),
        pendingServiceStatus=on("chat-2", "DEPLOYING"),
    )
    upgraded = service_shown(updates, cluster(ray_cluster("chat-1", *READY)), cluster(ray_cluster("chat-2", *STARTING)))
    assert upgraded.ok
    assert upgraded.reasons[0] == "application chat (pending) is DEPLOYING"


def test_without_conditions_the_older_field_decides() -> None:
    assert service_shown(service(serviceStatus="Running")).ok
    assert not service_shown(service(serviceStatus="")).ok


def test_a_service_that_the_operator_has_not_seen_or_that_is_deleted() -> None:
    assert service_shown(service()).reasons == (
        "the operator has not looked at it: does it run, and does it watch the namespace?",
    )
    deleted = {**service(**SERVES), "metadata": metadata("chat", deletionTimestamp=MADE)}
    assert (service_shown(deleted).ok, service_shown(deleted).reasons[0]) == (
        False,
        f"it is being deleted since {MADE}",
    )
