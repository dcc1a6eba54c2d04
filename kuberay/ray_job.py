"""A RayJob's spec: its cluster, its submission and its deadlines (validation.go: ValidateRayJobSpec)."""

from collections.abc import Mapping

from core.problems import Path

from . import authentication, deletion, ray_cluster
from .context import OperatorContext
from .formats import is_json_of_numbers, is_mapping, older, release_of
from .rules import Body, Cluster, Found, problem

MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")

_METADATA_SINCE = (2, 6, 0)
"""Oldest Ray that accepts metadata of a job (job.go: GetMetadataJson)."""


def check(spec: Body, path: Path, annotations: Mapping[str, str], operator: OperatorContext) -> Found:
    """All rules on a RayJob's spec, in a RayJob or a RayCronJob. `annotations`: those that apply to its cluster."""
    cluster = None
    if "rayClusterSpec" in spec:
        cluster = Cluster(spec["rayClusterSpec"], (*path, "rayClusterSpec"), annotations, operator)
        yield from authentication.unsupported(cluster, "RayJob")
        yield from ray_cluster.check(cluster)
        yield from ray_cluster.owned(cluster, "RayJob")
    yield from _ending(spec, path)
    gate = operator.enabled("RayJobDeletionPolicy")
    yield from deletion.check(spec, path, gate, cluster is not None and cluster.autoscaling)
    yield from _selector(spec, path)
    yield from _sidecar(spec, path)
    yield from _submission(spec, path)


def _ending(spec: Body, path: Path) -> Found:
    """The end of the job, and its retries."""
    shutdown, ttl = spec.get("shutdownAfterJobFinishes", False), spec["ttlSecondsAfterFinished"]
    if spec.get("suspend") and not shutdown:
        message = "a job can be suspended where its cluster goes with it: set shutdownAfterJobFinishes to true"
        yield problem("job-suspend", (*path, "suspend"), True, message)
    if ttl < 0:
        message = f"ttlSecondsAfterFinished is {ttl}: give 0 or more"
        yield problem("job-ttl", (*path, "ttlSecondsAfterFinished"), ttl, message)
    elif ttl and not shutdown:
        message = (
            f"ttlSecondsAfterFinished {ttl} is for a cluster that is shut down: set shutdownAfterJobFinishes to true"
        )
        yield problem("job-ttl", (*path, "ttlSecondsAfterFinished"), ttl, message)
    if (deadline := spec.get("activeDeadlineSeconds", 1)) <= 0:
        message = f"activeDeadlineSeconds is {deadline}: give 1 or more, or remove it"
        yield problem("job-deadline", (*path, "activeDeadlineSeconds"), deadline, message)
    limit, mode = spec["backoffLimit"], spec["submissionMode"]
    if limit < 0:
        yield problem("job-backoff-limit", (*path, "backoffLimit"), limit, f"backoffLimit is {limit}: give 0 or more")
    elif limit and (mode == "InteractiveMode" or spec.get("clusterSelector")):
        what = "a job in InteractiveMode" if mode == "InteractiveMode" else "a job on a selected cluster"
        message = f"{what} is not tried again: set backoffLimit to 0"
        yield problem("job-backoff-limit", (*path, "backoffLimit"), limit, message)


def _selector(spec: Body, path: Path) -> Found:
    """Its own cluster, or an existing one."""
    selector, at = spec.get("clusterSelector"), (*path, "clusterSelector")
    if not selector:
        if "rayClusterSpec" not in spec:
            message = "the job has no cluster: give a rayClusterSpec, or a clusterSelector with ray.io/cluster"
            yield problem("job-cluster", (*path, "rayClusterSpec"), None, message)
        return
    if not selector.get("ray.io/cluster"):
        message = "clusterSelector names no cluster: add ray.io/cluster with the name of a RayCluster"
        yield problem("job-cluster", (*at, "ray.io/cluster"), selector.get("ray.io/cluster"), message)
    if spec.get("suspend"):
        message = "a job on a selected cluster cannot be suspended: remove suspend"
        yield problem("job-suspend", (*path, "suspend"), True, message)
    if spec["submissionMode"] == "SidecarMode":
        message = (
            "SidecarMode puts a container into the job's own head: give a rayClusterSpec in place of clusterSelector"
        )
        yield problem("job-sidecar", at, selector, message)


def _sidecar(spec: Body, path: Path) -> Found:
    if spec["submissionMode"] != "SidecarMode":
        return
    for field in ("submitterPodTemplate", "submitterConfig"):
        if field in spec:
            message = f"SidecarMode has no pod that submits: remove {field}"
            yield problem("job-sidecar", (*path, field), None, message)
    template = spec.get("rayClusterSpec", {}).get("headGroupSpec", {}).get("template", {})
    policy = template.get("spec", {}).get("restartPolicy", "")
    if policy not in ("", "Never"):
        at = (*path, "rayClusterSpec", "headGroupSpec", "template", "spec", "restartPolicy")
        message = f"restartPolicy is {policy!r}, but SidecarMode needs a head that is not restarted: set it to Never"
        yield problem("job-sidecar", at, policy, message)


def _submission(spec: Body, path: Path) -> Found:
    """The submission of the job. The operator reads these fields after the cluster is ready."""
    mode = spec["submissionMode"]
    if mode not in MODES:
        message = f"{mode!r} is no way to submit a job, so it would never start: use one of {', '.join(MODES)}"
        yield problem("job-submission-mode", (*path, "submissionMode"), mode, message)
    if not is_mapping(spec.get("runtimeEnvYAML", "")):
        message = "this is not a YAML mapping: write a runtime environment such as pip: [numpy]"
        yield problem("job-runtime-env", (*path, "runtimeEnvYAML"), spec["runtimeEnvYAML"], message)
    if spec.get("metadata") and "rayClusterSpec" in spec and mode in ("K8sJobMode", "SidecarMode"):
        yield from _metadata(spec["rayClusterSpec"].get("rayVersion", ""), path)
    if mode == "HTTPMode" and not is_json_of_numbers(spec.get("entrypointResources", "")):
        message = "this is not JSON of names and numbers: write for example '{\"TPU\": 1}'"
        yield problem("job-entrypoint-resources", (*path, "entrypointResources"), spec["entrypointResources"], message)
    template = spec.get("submitterPodTemplate")
    if mode == "K8sJobMode" and template is not None and not template.get("spec", {}).get("containers"):
        message = "there is no container: give the one that submits first"
        at = (*path, "submitterPodTemplate", "spec", "containers")
        yield problem("job-submitter-containers", at, None, message)


def _metadata(ray_version: str, path: Path) -> Found:
    release = release_of(ray_version)
    if release is None or older(release, _METADATA_SINCE):
        message = f"metadata needs Ray 2.6.0 or later and rayVersion is {ray_version!r}: set it, or remove metadata"
        yield problem("job-metadata", (*path, "rayClusterSpec", "rayVersion"), ray_version or None, message)
