"""Renders the pods that connect to an external cluster: one that checks the connection, and one for each job, with its
usage of a quota. Pure functions."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from components import payloads
from components.external_cluster.settings import EXTERNAL_LABEL, ExternalClusterSettings
from components.ray_cluster.pods import PodIdentity, container, template
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.manifests import RUN_ANNOTATION, SUBMITTER, SUBMITTER_AMOUNTS, SUBMITTER_GROUP, run, submitted
from components.ray_job.settings import RayJobSettings, SubmitterConfigSettings
from components.tenant.demand import Demand, defaults, group_of
from components.tenant.settings import LimitSettings
from core.body import Body
from core.types import seconds
from kuberay.releases import FIRST_RAY_WITH_TOKENS

ENDED = 3
"""Exit code after which another pod would fail in the same way (payloads/external_cluster.py)."""

RUNNING = "/tmp/running"  # noqa: S108 - alone in its container
"""File that exists when Ray runs the job (payloads/external_cluster.py)."""

_AUTHORITY = "/etc/ray-platform/authority"
"""Where the pod mounts the certificate of the authority."""

_RUN_LABEL = "batch.kubernetes.io/controller-uid"
"""Label of a Job's pods: its UID (kubernetes, pkg/apis/batch/types.go: ControllerUidLabel). Pods that follow a lost one
have the same, so that they find the job that it has submitted."""

_CREATED = "jsonpath={.metadata.uid}"
"""What Pulumi's provider waits for, in place of the end of the Job: the component waits as the settings ask for. Not
skipAwait, which does not wait for the deletion either, before another run of the same name."""

_AFTER_DEADLINE = 60
"""Seconds that a pod has, after its job's deadline, to stop the job and to report that."""


def connection(settings: ExternalClusterSettings, namespace: str) -> dict[str, str]:
    """The addresses, with the keys of a RayCluster's. What the cluster does not have is empty, such as the Service of
    one outside of Kubernetes: Pulumi would drop a key without a value from a stack's outputs.

    `namespace`: the tenant's, from which a Service is reached.
    """
    name, of_service = settings.dashboard.service or ("", namespace)
    return {
        "namespace": of_service,
        "headService": name,
        "rayAddress": settings.client_address or "",
        "dashboardUrl": settings.dashboard_address,
        "jobsUrl": settings.dashboard_address,
    }


def job_name(name: str) -> str:
    """The name of the Job that connects to an external cluster, or submits the job of that name. A RayJob's Job has the
    RayJob's name, so a job can be moved while the old one is deleted."""
    return f"{name}-external"


def connection_check(settings: ExternalClusterSettings, pull_secrets: Sequence[str]) -> Body:
    task = {"version": settings.ray_version}
    spec = {"backoffLimit": 0, "template": _pod(settings, settings.name, task, pull_secrets, {})}
    return _job(settings.name, checked_as(settings), spec)


def is_check(job: Mapping[str, Any]) -> bool:
    """Whether a Job of a stack checks a connection, and does not submit a job."""
    cluster = job["spec"]["template"]["metadata"]["labels"][EXTERNAL_LABEL]
    return bool(job["metadata"]["name"] == job_name(cluster))


def checked_as(settings: ExternalClusterSettings) -> str:
    """Identifies a check of these settings; another one replaces the Job."""
    described = settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def submission(job: RayJobSettings, cluster: ExternalClusterSettings, pull_secrets: Sequence[str]) -> Body:
    """The Job that submits a job to the cluster and follows it. As with a RayJob, the settings of the job alone decide
    when it starts again.

    Raises Problems, with paths in the job's settings, if `submitterPodTemplate` cannot be merged.
    """
    deadline = job.active_deadline_seconds
    task = {"job": submitted(job), "deadline": deadline}
    tries = (job.submitter_config or SubmitterConfigSettings()).backoff_limit
    ended = {"containerName": SUBMITTER, "operator": "In", "values": [ENDED]}
    spec: Body = {
        "backoffLimit": tries,
        # A job that Ray has run is not run again.
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": ended}]},
        **({"activeDeadlineSeconds": seconds(cluster.ready_timeout) + deadline + _AFTER_DEADLINE} if deadline else {}),
        "template": _pod(cluster, job.name, task, pull_secrets, job.submitter_pod_template),
    }
    # The cluster autoscaler removes no node below a job that would be stopped with its pod (its FAQ, What types of pods
    # can prevent CA from removing a node).
    metadata = spec["template"]["metadata"]
    metadata["annotations"] = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        **metadata.get("annotations", {}),
    }
    return _job(job.name, run(job), spec)


def _job(name: str, described: str, spec: Body) -> Body:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(name),
            "annotations": {RUN_ANNOTATION: described, "pulumi.com/waitFor": _CREATED},
        },
        "spec": spec,
    }


def _pod(
    cluster: ExternalClusterSettings,
    job: str,
    task: Mapping[str, Any],
    pull_secrets: Sequence[str],
    over: Mapping[str, Any],
) -> Body:
    """The template of a pod that runs the payload, with the defaults of Ray's pods."""
    token, authority = cluster.token_secret, cluster.ca_secret
    plain = RayClusterSettings(
        name=cluster.name,
        image=cluster.image,
        ray_version=cluster.ray_version or FIRST_RAY_WITH_TOKENS,
        image_pull_secrets=tuple(pull_secrets),
        labels={EXTERNAL_LABEL: cluster.name},
        volumes=({"name": "authority", "secret": {"secretName": authority.name}},) if authority else (),
        volume_mounts=({"name": "authority", "mountPath": _AUTHORITY, "readOnly": True},) if authority else (),
    )
    whole = {
        "cluster": cluster.name,
        "address": cluster.dashboard_address,
        "seconds": seconds(cluster.ready_timeout),
        "ca": f"{_AUTHORITY}/{authority.key}" if authority else None,
        **task,
    }
    command = [
        "python",
        "-c",
        payloads.text("external_cluster"),
        json.dumps({k: v for k, v in whole.items() if v is not None}),
    ]
    secret = [
        {"name": "RAY_AUTH_MODE", "value": "token"},
        {"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": token.model_dump() if token else None}},
    ]
    ray = {
        **container(plain, SUBMITTER, None, {}, {}),
        # Kubernetes would replace $(NAME) by a variable, which may be the token.
        "command": [each.replace("$", "$$") for each in command],
        "env": [
            {"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "JOB", "value": job},
            {"name": "RUN", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{_RUN_LABEL}']"}}},
            *(secret if token else ()),
        ],
        "resources": SUBMITTER_AMOUNTS,
        # Ready means that Ray runs the job.
        "readinessProbe": {"exec": {"command": ["test", "-e", RUNNING]}, "periodSeconds": 2},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    return template(plain, ray, PodIdentity(), None, [(("submitterPodTemplate",), over)])


def demand_of_submission(body: Mapping[str, Any], limits: LimitSettings | None) -> Demand:
    """The usage of its pod; paths are in the body of the Job."""
    pod = group_of(("spec",), f"the {SUBMITTER_GROUP}", body["spec"], defaults(limits))
    return Demand(body["metadata"]["name"], (pod,), {"count/jobs.batch": Decimal(1)}, scales=False)
