"""Rules for combinations of RayJob settings. What KubeRay refuses in the rendered object is checked in kuberay/."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from components.ray_cluster.rules import problems_of_template
from components.ray_job.runtime_env import problems_of_runtime_env
from components.ray_job.settings import RayJobSettings
from core.problems import Path, Problem, raise_problems
from kuberay.shell import EXPANDED, interpreted


def _valid(job: RayJobSettings) -> RayJobSettings:
    raise_problems(problems_of(job))
    return job


ValidRayJob = Annotated[RayJobSettings, AfterValidator(_valid)]
"""Settings of a RayJob without conflicts."""

_BY_SHELL = ("K8sJobMode", "SidecarMode")
"""Modes in which a shell runs `ray job submit` with the job's settings as text
(ray-operator/controllers/ray/common/job.go: BuildJobSubmitCommand)."""

_OF_OWN_CLUSTER = ("shutdown_after_job_finishes", "ttl_seconds_after_finished", "deletion_strategy")


def problems_of(job: RayJobSettings) -> Iterator[Problem]:
    """All conflicts between settings; paths in the job's settings."""
    yield from _cluster(job)
    yield from _submission(job)
    yield from _shell(job)
    uploads = "KubeRay" if job.submission_mode == "HTTPMode" and not job.external_cluster else None
    yield from (each.below(("runtimeEnv",)) for each in problems_of_runtime_env(job.runtime_env, uploads))
    if job.suspend and job.wait_for != "nothing":
        message = "a suspended job does not run, so `up` would wait in vain: remove waitFor, or suspend"
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
        message = "the job has a cluster of its own already: remove cluster, or clusterSelector"
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
    allowed = ("Never",) if job.external_cluster else ("Never", "OnFailure")
    spec = job.submitter_pod_template.get("spec")
    policy = spec.get("restartPolicy") if isinstance(spec, dict) else None
    if policy is not None and policy not in allowed:
        message = f"the pod that submits belongs to a Job, whose pods end: use {' or '.join(allowed)}, or remove it"
        yield Problem(("submitterPodTemplate", "spec", "restartPolicy"), policy, message, "job-submitter")


def _shell(job: RayJobSettings) -> Iterator[Problem]:
    """Text that the shell of the submitter would interpret."""
    if job.submission_mode not in _BY_SHELL or job.external_cluster:
        return
    if job.entrypoint and (found := interpreted(job.entrypoint)):
        message = (
            f"the shell that submits the job would interpret {found!r}, and the cluster would not get it: put it into "
            "single quotes, as in bash -c 'a && b', or set submissionMode to HTTPMode"
        )
        yield Problem(("entrypoint",), job.entrypoint, message, "job-entrypoint-shell")
    texts: list[tuple[Path, Any]] = [
        (("runtimeEnv",), job.runtime_env.model_dump(by_alias=True) if job.runtime_env else {}),
        (("metadata",), dict(job.metadata)),
        (("entrypointResources",), dict(job.entrypoint_resources)),
    ]
    for path, value in texts:
        for at, text in _texts(path, value):
            if found := next((each for each in text if each in EXPANDED), None):
                message = (
                    f"the shell that submits the job would expand {found!r} in {text!r}: remove it, or set "
                    "submissionMode to HTTPMode"
                )
                yield Problem(at, text, message, "job-entrypoint-shell")


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts((*path, str(key)), str(key))
            yield from _texts((*path, str(key)), item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts((*path, index), item)
