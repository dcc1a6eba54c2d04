"""The status of RayClusters, RayJobs, RayServices, queues and quotas, for accounts with different rights."""

from decimal import Decimal
from typing import Any

import pytest

from components.cluster import ClusterUnreachableError, ForbiddenError
from components.queues.settings import Backend
from components.ray_service.applications import Application
from components.rollout.templates import ANNOTATION
from core.body import Body
from core.nodes import GPU_RESOURCE
from stacks.commands.status.budgets import QueueStatus, queue_statuses, quota_status
from stacks.commands.status.clusters import ClusterStatus, Gpus, Group, State, missing
from stacks.commands.status.live import look, namespace
from stacks.commands.status.owners import JobStatus, ServiceStatus, job_status, service_status
from stacks.commands.status.snapshot import Found, Live
from testbed.fake_cluster import FakeCluster
from tests.unit.status.live import (
    MADE,
    NO_ROOM,
    NOW,
    OPERATOR,
    READY,
    STARTING,
    SUSPENDED,
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

QUEUED = {"labels": {"kueue.x-k8s.io/queue-name": "research"}}


def test_a_ready_cluster_holds_the_gpus_of_its_pods_on_nodes() -> None:
    shown = cluster(ray_cluster("training", *READY, replicas=1), pod("head"), pod("worker", gpus=8))
    assert (shown.state, shown.ok, shown.reasons) == (State.READY, True, ())
    assert shown.gpus == Gpus(held=8, waiting=0, most=24)
    assert shown.groups == (Group("a100-8gpu", ready=1, desired=1),)
    assert (shown.head, shown.age, shown.owner) == ("Running", 7200, None)
    assert shown.status["conditions"][0] == {
        "type": "HeadPodReady",
        "status": "True",
        "reason": "Reported",
        "message": "",
        "lastTransitionTime": MADE,
    }


def test_pods_are_counted_as_the_status_of_a_deployment_counts_them() -> None:
    body = ray_cluster("training", *READY, replicas=3)
    body["spec"]["workerGroupSpecs"][0]["template"]["metadata"] = {"annotations": {ANNOTATION: "new"}}
    workers = [pod(name, gpus=8) for name in ("updated", "outdated", "ends", "ended", "waits")]
    for each, stamp in zip(workers, ("new", "old", "new", "new", "new"), strict=True):
        each["metadata"]["annotations"] = {ANNOTATION: stamp}
    workers[2]["metadata"]["deletionTimestamp"] = MADE
    workers[3]["status"] = {"phase": "Failed"}
    workers[4]["status"] = UNSCHEDULED
    shown = cluster(body, pod("head"), *workers).status
    assert shown["worker"] == {
        **{"desired": 0, "min": 0, "max": 0},
        **{"replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2, "unavailableReplicas": 1},
    }
    assert (shown["head"]["replicas"], shown["head"]["unavailableReplicas"], shown["startTime"]) == (1, 0, MADE)
    suspended = cluster(ray_cluster("training", SUSPENDED, suspend=True)).status
    assert [suspended[each]["unavailableReplicas"] for each in ("head", "worker")] == [0, 0]


def test_a_worker_without_a_node_waits_and_its_cluster_is_ready_all_the_same() -> None:
    shown = cluster(ray_cluster("training", *READY, replicas=2), pod("head"), pod("worker", gpus=8, node=None))
    assert (shown.state, shown.gpus) == (State.READY, Gpus(held=0, waiting=8, most=24))
    assert shown.reasons == (f"pod worker is not scheduled: {NO_ROOM}",)
    assert shown.groups == (Group("a100-8gpu", ready=0, desired=2),)


def test_a_group_without_replicas_has_its_minimum_as_kuberay_does() -> None:
    body = ray_cluster("training", *READY)
    [its_group] = body["spec"]["workerGroupSpecs"]
    del its_group["replicas"]
    its_group |= {"minReplicas": 2, "numOfHosts": 2}
    assert cluster(body).groups == (Group("a100-8gpu", ready=0, desired=4),)


def test_a_pod_that_pulls_its_image_holds_its_gpus_and_an_ended_one_holds_none() -> None:
    pulls = pod("pulls", gpus=8, phase="Pending", conditions=[])
    assert cluster(ray_cluster("training", *READY), pulls).gpus.held == 8
    assert cluster(ray_cluster("training", *READY), pod("ended", gpus=8, phase="Failed")).gpus.held == 0


@pytest.mark.parametrize(("outside", "ready"), [(True, False), (False, False), (True, True)])
def test_a_pod_that_an_edit_of_its_image_does_not_reach_is_named(outside: bool, ready: bool) -> None:
    body = ray_cluster("training", *STARTING, metadata={"generation": 2})
    [of_spec] = body["spec"]["headGroupSpec"]["template"]["spec"]["containers"]
    of_spec["image"] = "ray:2.60.0"
    head = pod("head") if ready else pod("head", phase="Pending", conditions=[])
    [of_pod] = head["spec"]["containers"]
    of_pod["image"] = "ray:2.60.0-typo"
    named = "pod head has the image before the edit to ray:2.60.0: delete it, and KubeRay creates it again"
    assert (named in cluster(body, head, in_stack_file=not outside).reasons) is (outside and not ready)
    of_pod["image"] = of_spec["image"]
    assert named not in cluster(body, head, in_stack_file=not outside).reasons


def test_a_cluster_that_is_not_ready_names_condition_pod_and_warning() -> None:
    refused = warning("training", "exceeded quota: ray-platform", kind="RayCluster")
    other = warning("research", "of another cluster", kind="RayCluster")
    shown = cluster(ray_cluster("training", *STARTING), pod("head", node=None), events=[refused, other])
    assert (shown.state, shown.ok, shown.head) == (State.NOT_READY, False, "Pending")
    assert shown.reasons == (
        "HeadPodReady is False: containers not ready",
        "RayClusterProvisioned is False: no",
        f"pod head is not scheduled: {NO_ROOM}",
        "RayCluster training: R: exceeded quota: ray-platform",
    )


def test_a_gang_that_volcano_has_not_started_waits() -> None:
    gang = {
        "metadata": metadata("ray-training-pg", ownerReferences=owned("RayCluster", "training")),
        "spec": {"queue": "research"},
        "status": {"phase": "Pending", "conditions": [condition("Unschedulable", "True", "3/3 tasks unschedulable")]},
    }
    shown = cluster(ray_cluster("training", *STARTING), backend="volcano", podgroups=[gang])
    assert (shown.state, shown.reasons[0]) == (State.WAITING, "it waits in its queue: 3/3 tasks unschedulable")
    admitted = {**gang, "status": {"phase": "Inqueue"}}
    [line, *_] = cluster(ray_cluster("training", *STARTING), backend="volcano", podgroups=[admitted]).reasons
    assert line == "it waits in its queue: its queue has admitted it, and its pods have no nodes yet"
    started = {**gang, "status": {**gang["status"], "phase": "Running"}}
    assert cluster(ray_cluster("training", *STARTING), backend="volcano", podgroups=[started]).state is State.NOT_READY


def test_a_cluster_that_kueue_suspends_waits_and_one_that_its_spec_suspends_does_not() -> None:
    workload = {
        "metadata": metadata("workload", ownerReferences=owned("RayCluster", "training")),
        "status": {"conditions": [condition("QuotaReserved", "False", "8 more needed")]},
    }
    queued = ray_cluster("training", SUSPENDED, suspend=True, metadata=QUEUED)
    shown = cluster(queued, backend="kueue", workloads=[workload])
    assert (shown.state, shown.ok, shown.reasons[0]) == (State.WAITING, False, "it waits in its queue: 8 more needed")
    assert cluster(queued, backend="kueue").reasons[0] == "it waits in its queue: Kueue has not reported why"
    of_service = ray_cluster(
        "training-x", SUSPENDED, suspend=True, metadata={**QUEUED, "ownerReferences": owned("RayService", "chat")}
    )
    workload["metadata"] = metadata("workload", ownerReferences=owned("RayService", "chat"))
    assert cluster(of_service, backend="kueue", workloads=[workload]).reasons[0] == shown.reasons[0]
    rests = cluster(ray_cluster("training", SUSPENDED, suspend=True), backend="kueue")
    assert (rests.state, rests.ok, rests.reasons) == (State.SUSPENDED, True, ())
    assert (rests.groups, rests.gpus.most) == ((Group("a100-8gpu", ready=0, desired=0),), 24)


def test_a_cluster_that_is_deleted_new_missing_or_hidden_has_its_reason() -> None:
    leaving = {"deletionTimestamp": MADE, "finalizers": ["ray.io/gcs-ft-redis-cleanup-finalizer"]}
    shown = cluster(ray_cluster("training", *READY, metadata=leaving))
    assert (shown.state, shown.ok) == (State.DELETING, False)
    [line] = shown.reasons
    assert line.endswith("and stays until its finalizers are gone: ray.io/gcs-ft-redis-cleanup-finalizer")
    [line] = cluster(ray_cluster("training")).reasons
    assert line.startswith("the operator has not looked at the RayCluster")
    assert missing("training", found()).state is State.MISSING
    hidden = missing("training", found({"rayclusters": "forbidden"}))
    assert (hidden.state, hidden.reasons) == (State.UNKNOWN, ("it cannot be read: forbidden",))


def test_without_the_right_to_read_pods_their_numbers_are_unknown() -> None:
    shown = cluster(ray_cluster("training", *READY), unreadable={"pods": "forbidden"})
    assert (shown.state, shown.gpus) == (State.READY, Gpus(held=None, waiting=None, most=24))
    assert shown.groups == (Group("a100-8gpu", ready=None, desired=1),)


@pytest.mark.parametrize(
    ("scales", "most", "gpus"),
    [(True, 3, 24), (True, 2**31 - 1, None), (False, 3, 16)],
    ids=["at most", "any", "fixed"],
)
def test_a_cluster_can_grow_to_its_most_workers(scales: bool, most: int, gpus: int | None) -> None:
    body = ray_cluster("training", *READY, replicas=2, most=most, enableInTreeAutoscaling=scales)
    assert cluster(body).gpus.most == gpus


def test_the_owner_of_a_cluster_is_named() -> None:
    of_a_job = ray_cluster("nightly-x", *READY, metadata={"ownerReferences": owned("RayJob", "nightly")})
    shown: ClusterStatus = cluster(of_a_job, in_stack_file=False)
    assert (shown.owner, shown.in_stack_file) == ("RayJob nightly", False)


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


def test_a_queue_of_volcano_has_its_gangs_counted_and_nothing_starts_in_a_closed_one() -> None:
    first = found(podgroups=[gang("a", "Running"), gang("b", "Pending"), gang("c", "Pending", queue="other")])
    second = found(podgroups=[gang("d", "Inqueue")])
    shown = volcano(first, second)
    assert (shown.ok, shown.admitted, shown.waiting) == (True, 1, 2)
    assert (shown.used[GPU_RESOURCE], shown.used["cpu"]) == (Decimal(8), Decimal("0.5"))
    assert (shown.deserved, shown.limit[GPU_RESOURCE]) == (gpus(16), Decimal(24))
    shown = volcano(found({"podgroups": "forbidden"}), found(podgroups=[gang("a", "Pending")]))
    assert (shown.admitted, shown.waiting) == (None, None)
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


def test_a_queue_of_kueue_is_the_sum_of_its_flavors_with_a_limit_unless_it_borrows_without_one() -> None:
    shown = kueue(condition("Active", "True"), borrowingLimit="4")
    assert (shown.ok, shown.admitted, shown.waiting) == (True, 1, 2)
    assert (shown.used, shown.deserved, shown.limit) == (gpus(12), gpus(24), gpus(32))
    assert kueue(condition("Active", "True")).limit == {}
    assert kueue(condition("Active", "True"), cohort=None).limit == gpus(24)


def test_a_queue_that_kueue_does_not_serve_has_the_reason() -> None:
    shown = kueue(condition("Active", "False", "Can't admit new workloads: FlavorNotFound."))
    assert (shown.ok, shown.reasons) == (False, ("it is not active: Can't admit new workloads: FlavorNotFound.",))


def test_a_queue_that_does_not_exist_is_named_unless_queues_must_not_be_read() -> None:
    [shown] = queue_statuses(["research"], "volcano", found(queues=[]), [])
    assert (shown.ok, shown.reasons[0][:40]) == (False, "it is in the stack file and not in the c")
    assert queue_statuses(["research"], "volcano", found({"queues": "forbidden"}), []) == []


def test_a_quota_has_what_is_used_of_it() -> None:
    hard = {"requests.nvidia.com/gpu": "16", "requests.memory": "1Ti", "services.nodeports": "0"}
    body = {"metadata": metadata("ray-platform"), "spec": {"hard": hard}}
    counted = quota_status({**body, "status": {"hard": hard, "used": {**hard, "requests.nvidia.com/gpu": "8"}}})
    assert (counted.used["gpus"], counted.hard["gpus"], "cpu" in counted.hard) == (Decimal(8), Decimal(16), False)
    not_yet = quota_status(body)
    assert (not_yet.used, not_yet.hard["memory"]) == ({}, Decimal(2**40))


class Lists(FakeCluster):
    """Each list has one object, with the path by which it was asked for."""

    def request(self, method: str, path: str, **options: Any) -> Body | None:
        super().request(method, path, **options)
        return {"items": [{"kind": path.rpartition("/")[2], "path": path}]}


def test_everything_of_a_namespace_and_the_schedulers_queues_are_read() -> None:
    read = namespace(Lists(), "team-a", "kueue")
    assert read.unreadable == {}
    assert read.all("rayjobs") == ({"kind": "rayjobs", "path": "/apis/ray.io/v1/namespaces/team-a/rayjobs"},)
    assert read.all("pods") == ({"kind": "pods", "path": "/api/v1/namespaces/team-a/pods"},)
    assert read.all("resourcequotas")[0]["kind"] == "resourcequotas"
    assert read.all("workloads")[0]["path"] == "/apis/kueue.x-k8s.io/v1beta2/namespaces/team-a/workloads"
    assert "v1beta1" in namespace(Lists(), "team-a", "volcano").all("podgroups")[0]["path"]
    assert set(namespace(Lists(), "team-a", None).objects) == {
        *("rayclusters", "rayjobs", "rayservices", "pods", "events", "resourcequotas"),
    }
    assert look(Lists(), [], "ray-system", None).shared == Found()
    kueue = look(Lists(), [], "ray-system", "kueue")
    assert kueue.shared.all("clusterqueues")[0]["path"] == "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    assert kueue.operator_pods == ({"kind": "pods", "path": "/api/v1/namespaces/ray-system/pods"},)


def test_a_kind_that_must_not_be_read_is_recorded_and_the_others_are_read() -> None:
    cluster = Lists()
    for part in ("resourcequotas", "podgroups", "queues", "ray-system"):
        cluster.fail(ForbiddenError(f"{part} is forbidden"), part)
    shown = look(cluster, ["team-a"], "ray-system", "volcano")
    team = shown.namespaces["team-a"]
    assert team.unreadable == {"resourcequotas": "resourcequotas is forbidden", "podgroups": "podgroups is forbidden"}
    assert len(team.all("rayclusters")) == 1
    assert shown.shared.unreadable == {"queues": "queues is forbidden"}
    assert shown.operator_pods is None


def test_a_cluster_without_kuberay_is_not_an_empty_one() -> None:
    read = namespace(FakeCluster(), "team-a", "volcano")
    assert set(read.unreadable) == {"rayclusters", "rayjobs", "rayservices"}
    assert read.unreadable["rayclusters"].endswith("is KubeRay installed, and is this the right context?")


def test_an_api_server_that_does_not_answer_is_an_error() -> None:
    cluster = FakeCluster()
    cluster.fail(ClusterUnreachableError("connection refused"))
    with pytest.raises(ClusterUnreachableError, match="connection refused"):
        look(cluster, ["team-a", "team-b"], "ray-system", None)
    assert [each.path for each in cluster.requests] == ["/api/v1/namespaces/ray-system/pods"]


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


def test_a_job_has_its_cluster_and_its_time_so_far_or_up_to_its_end() -> None:
    runs = shown(
        job("Running", "RUNNING", message="Job is currently running.", **STARTED), cluster(ray_cluster(OWN, *READY))
    )
    assert (runs.ok, runs.deployment, runs.job, runs.cluster) == (True, "Running", "RUNNING", OWN)
    assert (runs.age, runs.since, runs.duration, runs.reasons) == (7200, "2026-01-01T11:00:00Z", 3600, ())
    ended = shown(job("Complete", "SUCCEEDED", **STARTED, endTime="2026-01-01T11:00:30Z"))
    assert (ended.ok, ended.duration) == (True, 30)


def test_a_run_is_shown_with_its_template_and_who_runs_it() -> None:
    run = job("Running", "RUNNING")
    run["metadata"]["labels"] = {"ray-platform/job-template": "finetune"}
    assert shown(run).owner == "template finetune"
    run["metadata"]["annotations"] = {"ray-platform/created-by": "alice"}
    assert shown(run).owner == "template finetune, alice"
    run["metadata"]["labels"]["ray-platform/job-size"] = "large"
    assert shown(run).owner == "template finetune, size large, alice"
    run["metadata"]["annotations"]["ray-platform/code"] = "gcs://_ray_pkg_f0cdcce0d917935bff95f33613e9f533c9e8fd39.zip"
    assert shown(run).owner == "template finetune, size large, alice, code f0cdcce0d917"


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
    assert shown(selecting, cluster(ray_cluster(OWN, *READY), pod("head", OWN)), backend="volcano").reasons == (
        "with Volcano, KubeRay starts no RayJob on an existing RayCluster: submit it there (`ray job submit`)",
    )
    assert shown(selecting, cluster(ray_cluster(OWN, *READY), pod("head", OWN)), backend="kueue").reasons == ()


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
    ready = cluster(ray_cluster(OWN, *READY), pod("head", OWN))
    submitted = shown(job("Running", "PENDING"), ready, pods=[submitter])
    assert not submitted.ok
    assert submitted.reasons == ("pod nightly-abc, container ray-job-submitter: ImagePullBackOff: no such image",)
    assert shown(job("Running", "RUNNING"), ready, pods=[submitter]).ok
    other = {**submitter, "metadata": metadata("other-abc", labels={"batch.kubernetes.io/job-name": "other"})}
    assert shown(job("Running", "PENDING"), ready, pods=[{**other, "status": UNSCHEDULED}]).ok


def test_a_job_that_waits_for_somebody_and_one_that_the_operator_has_not_seen() -> None:
    waits = shown(job("Waiting"))
    assert waits.ok
    assert waits.reasons[0].startswith("InteractiveMode: it waits until somebody submits the job")
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


def test_an_edit_that_kuberay_does_not_apply_is_named_with_the_way_out() -> None:
    """KubeRay compares a pending RayCluster with the spec only after an answer of Ray in its Ready head."""
    pending = ray_cluster("chat-1", *READY)
    first = service(pendingServiceStatus={"rayClusterName": "chat-1"})
    first["spec"] = {"rayClusterConfig": pending["spec"]}
    shown = service_shown(first, cluster(pending), rayclusters=[pending])
    assert "as on simulated nodes" in shown.reasons[-1]
    first["spec"] = {"rayClusterConfig": {**pending["spec"], "rayVersion": "2.60.1"}}
    shown = service_shown(first, cluster(pending), rayclusters=[pending])
    assert "has not applied the last edit" in shown.reasons[-1]
    assert "`kubectl delete raycluster -n team-a chat-1`" in shown.reasons[-1]
    served = {"rayClusterName": "chat-1", "applicationStatuses": {"chat": {"status": "RUNNING"}}}
    first["status"]["pendingServiceStatus"] = served
    assert not [
        each for each in service_shown(first, cluster(pending), rayclusters=[pending]).reasons if "Ready, but" in each
    ]


def test_a_service_serves_while_its_update_is_not_ready() -> None:
    updates = service(
        **SERVES,
        activeServiceStatus=on("chat-1", "RUNNING"),
        pendingServiceStatus=on("chat-2", "DEPLOYING"),
    )
    upgraded = service_shown(updates, cluster(ray_cluster("chat-1", *READY)), cluster(ray_cluster("chat-2", *STARTING)))
    assert upgraded.ok
    assert upgraded.reasons[0] == "application chat (pending) is DEPLOYING"


def test_a_service_that_has_no_conditions_that_is_new_or_that_is_deleted() -> None:
    assert service_shown(service(serviceStatus="Running")).ok
    assert not service_shown(service(serviceStatus="")).ok
    assert service_shown(service()).reasons == (
        "the operator has not looked at it: does it run, and does it watch the namespace?",
    )
    deleted = {**service(**SERVES), "metadata": metadata("chat", deletionTimestamp=MADE)}
    assert (service_shown(deleted).ok, service_shown(deleted).reasons[0]) == (
        False,
        f"it is being deleted since {MADE}",
    )
