"""Rules for combinations of RayJob settings. What KubeRay refuses in the rendered object is checked in kuberay/."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import AfterValidator

from components.ray_cluster.rules import problems_of_template
from components.ray_job.settings import RayJobSettings
from core.pods import kept
from core.problems import Problem, raise_problems
from kuberay.runtime_env import problems_of_runtime_env
from kuberay.shell import problems_of_shell


def _valid(job: RayJobSettings) -> RayJobSettings:
    raise_problems(problems_of(job))
    return job


ValidRayJob = Annotated[RayJobSettings, AfterValidator(_valid)]
"""Settings of a RayJob without conflicts."""

_OF_OWN_CLUSTER = ("shutdown_after_job_finishes", "ttl_seconds_after_finished", "deletion_strategy")


def problems_of(job: RayJobSettings) -> Iterator[Problem]:
    """All conflicts between settings; paths in the job's settings."""
    yield from _cluster(job)
    yield from _submission(job)
    yield from _shell(job)
    if job.entrypoint and not job.entrypoint.strip(" \t'\""):
        yield Problem(("entrypoint",), job.entrypoint, "has no command: write it", "job-entrypoint")
    values = job.runtime_env.others if job.runtime_env else {}
    uploads = "KubeRay" if job.submission_mode == "HTTPMode" and not job.external_cluster else None
    yield from (each.below(("runtimeEnv",)) for each in problems_of_runtime_env(values, uploads))
    if job.suspend and job.wait_for != "nothing":
        message = "a suspended job does not run, so `up` would wait until waitTimeout: remove waitFor, or suspend"
        yield Problem(("waitFor",), job.wait_for, message, "job-waits")
    first, whole = job.pre_running_deadline_seconds, job.active_deadline_seconds
    if first is not None and whole is not None and first >= whole:
        message = f"has no effect, because activeDeadlineSeconds {whole} includes it: set less, or remove it"
        yield Problem(("preRunningDeadlineSeconds",), first, message, "job-deadline")
    if "wait_timeout" in job.model_fields_set and job.wait_for == "nothing":
        message = "has no effect, because `up` does not wait for the job: remove it, or set waitFor"
        yield Problem(("waitTimeout",), job.wait_timeout, message, "job-waits")


def _cluster(job: RayJobSettings) -> Iterator[Problem]:
    if job.external_cluster and (job.cluster or job.cluster_selector):
        other = "cluster" if job.cluster else "clusterSelector"
        message = f"{other} names a cluster already: remove {other}, or externalCluster"
        yield Problem(("externalCluster",), job.external_cluster, message, "said-twice")
    elif job.external_cluster:
        yield from _external(job)
    elif job.cluster and job.cluster_selector:
        message = "the job already has a cluster: remove cluster, or clusterSelector"
        yield Problem(("clusterSelector",), job.cluster_selector.cluster, message, "said-twice")
    elif job.cluster:
        yield from (problem.below(("cluster",)) for problem in problems_of_template(job.cluster))
    elif job.cluster_selector is None:
        message = "the job has no cluster: add cluster, clusterSelector with ray.io/cluster, or externalCluster"
        yield Problem((), None, message, "job-cluster")
    else:
        if job.suspend:
            message = "a job on a selected RayCluster cannot be suspended: remove it"
            yield Problem(("suspend",), True, message, "job-suspend")
        for field in _OF_OWN_CLUSTER:
            if (value := getattr(job, field)) is not None:
                key = type(job).model_fields[field].alias or field
                message = "is about a cluster of the job's own, and the selected RayCluster is not: remove it"
                yield Problem((key,), value if isinstance(value, bool | int) else None, message, "job-cluster")


_NOT_EXTERNAL: Mapping[str, str] = {
    "submission_mode": "a pod submits a job to an external cluster: remove it",
    "backoff_limit": (
        "each try of it has a new cluster, and an external one stays: remove it; submitterConfig.backoffLimit is for "
        "the submission"
    ),
    "pre_running_deadline_seconds": (
        "is for KubeRay, which does not know the job: remove it, or set activeDeadlineSeconds"
    ),
    "suspend": "is for KubeRay, which does not know the job: remove it; removing the whole job stops it",
    **dict.fromkeys(_OF_OWN_CLUSTER, "is about a cluster of the job's own, and an external one is not: remove it"),
}
"""Keys that a job on an external cluster must not have, and why."""


def _external(job: RayJobSettings) -> Iterator[Problem]:
    for field, why in _NOT_EXTERNAL.items():
        if field in job.model_fields_set:
            value = getattr(job, field)
            key = type(job).model_fields[field].alias or field
            yield Problem((key,), value if isinstance(value, bool | int | str) else None, why, "job-external")


def _submission(job: RayJobSettings) -> Iterator[Problem]:
    if job.external_cluster and job.submission_mode != "K8sJobMode":
        return
    interactive = job.submission_mode == "InteractiveMode"
    if job.entrypoint is None and not interactive:
        message = "the job has nothing to run: add entrypoint, or set submissionMode to InteractiveMode"
        yield Problem((), None, message, "job-entrypoint")
    elif job.entrypoint is not None and interactive:
        message = "KubeRay submits nothing in InteractiveMode: remove it, or submissionMode"
        yield Problem(("entrypoint",), job.entrypoint, message, "job-entrypoint")
    if job.submission_mode == "K8sJobMode":
        yield from _restarts(job)
        return
    for field, key in (("submitter_config", "submitterConfig"), ("submitter_pod_template", "submitterPodTemplate")):
        if getattr(job, field):
            message = f"{job.submission_mode} has no pod that submits: remove it, or set submissionMode to K8sJobMode"
            yield Problem((key,), None, message, "job-submitter")


def _restarts(job: RayJobSettings) -> Iterator[Problem]:
    """A pod that submits and that the API server refuses in a Job (kubernetes, pkg/apis/batch/validation). KubeRay
    passes its policy on and waits; the Job of an external cluster has a podFailurePolicy."""
    yield from kept(job.submitter_pod_template, ("submitterPodTemplate",))
    allowed = ("Never",) if job.external_cluster else ("Never", "OnFailure")
    spec = job.submitter_pod_template.get("spec")
    policy = spec.get("restartPolicy") if isinstance(spec, dict) else None
    if policy is not None and policy not in allowed:
        message = f"the pod that submits belongs to a Job, whose pods end: use {' or '.join(allowed)}, or remove it"
        yield Problem(("submitterPodTemplate", "spec", "restartPolicy"), policy, message, "job-submitter")


def _shell(job: RayJobSettings) -> Iterator[Problem]:
    """Text that the shell of the submitter would interpret."""
    if not job.external_cluster:
        parts = {
            "runtimeEnv": job.runtime_env.model_dump(by_alias=True) if job.runtime_env else {},
            "metadata": dict(job.metadata),
            "entrypointResources": dict(job.entrypoint_resources),
        }
        yield from problems_of_shell(job.submission_mode, job.entrypoint or "", parts)
