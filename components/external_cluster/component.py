"""How the connection to an external cluster is checked, and how a job is submitted there."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pulumi

from components.bodies import in_namespace
from components.cluster import Cluster
from components.dynamic.reached import Reached, ReachedArgs, Wait
from components.external_cluster.manifests import connection
from components.external_cluster.progress import ConnectionFailedError, next_check, until_reached
from components.external_cluster.settings import ExternalClusterSettings
from components.kubernetes import create
from components.kubernetes_cluster import KubernetesCluster
from components.objects import Object
from components.ray_cluster.readiness import status_summary
from components.ray_job.component import run_once_options
from components.ray_job.manifests import RUN_ANNOTATION
from components.ray_job.settings import RayJobSettings
from core.types import seconds

_START_SECONDS = 60
"""For the pod of a check to start, beside the time in which it tries to connect."""


@dataclass(frozen=True)
class ExternalRayClusterArgs:
    settings: ExternalClusterSettings

    objects: Sequence[Object]
    """The Job that checks the connection (manifests.connection_check)."""

    namespace: pulumi.Input[str]
    """The tenant's namespace, in which the pod that checks the connection runs."""

    namespace_name: str
    """Its name, to read the last check."""

    cluster: Cluster = field(default_factory=KubernetesCluster)


class ExternalRayCluster(pulumi.ComponentResource):
    """A Ray cluster that exists already: its connection is checked, and nothing of it is created.

    The check is a Job. It runs when the settings change, and again after it has failed. `up` waits for it and fails
    with its reason (pulumi.RunError).

    Outputs, with the meaning of those of a RayCluster:
        connection: addresses. `namespace` and `headService` are those of its Service, if it is one of Kubernetes.
        worker_groups: none are known.
        largest_gpus: GPUs of its largest node at the check; 0 if it did not report them.
        status: state `ready` and the number of workers, as of the check.
        state: the state in `status`.
        summary: all of it, with the keys that a stack's output has for a RayCluster.
    """

    connection: pulumi.Output[dict[str, str]]
    worker_groups: list[dict[str, Any]]
    largest_gpus: pulumi.Output[int]
    status: pulumi.Output[dict[str, Any]]
    state: pulumi.Output[str | None]
    summary: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: ExternalRayClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:ExternalRayCluster", name, None, opts)
        settings = args.settings
        [check] = args.objects
        metadata = check.body["metadata"]
        annotations = metadata["annotations"]
        described = next_check(args.cluster, args.namespace_name, metadata["name"], annotations[RUN_ANNOTATION])
        body = {**check.body, "metadata": {**metadata, "annotations": {**annotations, RUN_ANNOTATION: described}}}
        sent = replace(check, body=in_namespace(body, args.namespace))
        [job] = create(name, [sent], run_once_options(self, body, opts)).values()
        self.connection = job.metadata.apply(lambda metadata: connection(settings, metadata["namespace"]))
        limit = seconds(settings.ready_timeout) + _START_SECONDS
        wait = _until(args.cluster, f"External Ray cluster {settings.name}", metadata["name"], "succeeded", limit)
        waited = ReachedArgs("Job", args.namespace, metadata["name"], job, wait, described, args.cluster.connection)
        checked = Reached(f"{name}-connected", waited, pulumi.ResourceOptions(parent=self)).status.apply(
            lambda message: _summary("ready", _reported(message or ""))
        )
        self.worker_groups = []
        self.largest_gpus = checked.apply(lambda found: found["largestGpus"])
        self.status = checked.apply(lambda found: found["status"])
        self.state = self.status.apply(lambda status: status["state"])
        self.summary = pulumi.Output.all(self.connection, checked).apply(
            lambda known: {
                **known[0],
                "state": known[1]["status"]["state"],
                "status": known[1]["status"],
                "largestGpus": known[1]["largestGpus"],
                "workerGroups": self.worker_groups,
            }
        )
        self.register_outputs({"connection": self.connection, "status": self.status, "state": self.state})


@dataclass(frozen=True)
class SubmittedJobArgs:
    settings: RayJobSettings

    objects: Sequence[Object]
    """The Job that submits (manifests.submission)."""

    cluster: ExternalClusterSettings
    namespace: pulumi.Input[str]

    connected: pulumi.Input[Any] = None
    """Known once the connection has been checked; the job is submitted after that."""

    session: Cluster = field(default_factory=KubernetesCluster)
    """With the Kubernetes cluster in which the pod runs."""


class SubmittedJob(pulumi.ComponentResource):
    """A job on an external cluster: a pod submits it to the jobs API, prints its log, and ends with it.

    As a RayJob, it starts when the resource is created, and again when its settings or its `runId` change. Then and
    when the resource is deleted, a running job is stopped.

    Outputs:
        connection: namespace and name of the job, and the head Service, empty outside of Kubernetes.
        status: with `wait_for`, the status in Ray's words once `up` has waited for it, else None. An update fails if
            the job fails meanwhile, or does not get there in time (pulumi.RunError).
    """

    connection: pulumi.Output[dict[str, str]]
    status: pulumi.Output[str | None]

    def __init__(self, name: str, args: SubmittedJobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:SubmittedJob", name, None, opts)
        # In a preview it is not known after each change of the cluster's settings: the job would be shown as replaced.
        connected = None if pulumi.runtime.is_dry_run() else args.connected
        namespace = pulumi.Output.all(args.namespace, connected).apply(lambda known: known[0])
        [submission] = args.objects
        sent = replace(submission, body=in_namespace(submission.body, namespace))
        [job] = create(name, [sent], run_once_options(self, submission.body, opts)).values()
        self.connection = job.metadata.apply(
            lambda metadata: {
                "namespace": metadata["namespace"],
                "job": args.settings.name,
                "headService": connection(args.cluster, metadata["namespace"])["headService"],
            }
        )
        self.status = pulumi.Output.from_input(None)
        settings = args.settings
        if settings.wait_for != "nothing":
            at = submission.body["metadata"]
            limit = seconds(settings.wait_timeout)
            wait = _until(args.session, f"Job {settings.name}", at["name"], settings.wait_for, limit)
            run = f"{at['annotations'][RUN_ANNOTATION]} {settings.wait_for}"
            waited = ReachedArgs("Job", args.namespace, at["name"], job, wait, run, args.session.connection)
            below_self = pulumi.ResourceOptions(parent=self)
            self.status = Reached(f"{name}-{settings.wait_for}", waited, below_self).status
        self.register_outputs({"connection": self.connection, "status": self.status})


def _until(cluster: Cluster, what: str, job: str, stage: Literal["running", "succeeded"], limit: int) -> Wait:
    async def until_stage(namespace: str, show: Callable[[str], None]) -> None:
        try:
            await until_reached(cluster, namespace, job, stage, limit, show)
        except ConnectionFailedError as error:
            raise ConnectionFailedError(f"{what} in namespace {namespace}: {error}") from error

    return until_stage


def _reported(message: str) -> dict[str, Any]:
    """What a check has reported in its message. That of a simulated node is not JSON."""
    with suppress(ValueError):
        return dict(json.loads(message))
    return {}


def _summary(state: str | None, reported: Mapping[str, Any]) -> dict[str, Any]:
    workers = int(reported.get("workers", 0))
    status = status_summary({"status": {"state": state, "desiredWorkerReplicas": workers}})
    known = {**status["worker"], "replicas": workers, "readyReplicas": workers, "availableReplicas": workers}
    return {"status": {**status, "worker": known}, "largestGpus": int(reported.get("largestGpus", 0))}
