"""A RayJob's spec: its cluster, its submission, its deadlines and its deletion (validation.go: ValidateRayJobSpec). A
RayCronJob: its schedule, and the template of its RayJobs.
"""

import itertools
from collections.abc import Mapping

from core.body import Body
from core.problems import Path
from kuberay import features, ray_cluster
from kuberay.cron import is_zone, schedule_fault
from kuberay.formats import is_json_of_numbers, is_mapping, older, semver_numbers
from kuberay.releases import OperatorContext
from kuberay.rules import Cluster, Found, problem

MODES = ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode")

_METADATA_SINCE = (2, 6, 0)
"""Oldest Ray that accepts metadata of a job (job.go: GetMetadataJson)."""


def check(spec: Body, path: Path, annotations: Mapping[str, str], operator: OperatorContext) -> Found:
    """All rules on a RayJob's spec, in a RayJob or a RayCronJob. `annotations`: those that apply to its cluster."""
    cluster = None
    if "rayClusterSpec" in spec:
        cluster = Cluster(spec["rayClusterSpec"], (*path, "rayClusterSpec"), annotations, operator)
        yield from features.check_no_kubernetes_tokens(cluster, "RayJob")
        yield from ray_cluster.check(cluster)
        yield from ray_cluster.owned(cluster, "RayJob")
    yield from _ending(spec, path)
    gate = operator.enabled("RayJobDeletionPolicy")
    yield from _check_deletion(spec, path, gate, cluster is not None and cluster.autoscaling)
    yield from _selector(spec, path)
    yield from _sidecar(spec, path)
    yield from _submission(spec, path, operator)


def _ending(spec: Body, path: Path) -> Found:
    """The end of the job, and its retries."""
    shutdown, ttl = spec.get("shutdownAfterJobFinishes", False), spec["ttlSecondsAfterFinished"]
    if spec.get("suspend") and not shutdown:
        message = "a job can be suspended only if its cluster is deleted with it: set shutdownAfterJobFinishes to true"
        yield problem("job-suspend", (*path, "suspend"), True, message)
    if ttl < 0:
        message = f"ttlSecondsAfterFinished is {ttl}: give 0 or more"
        yield problem("job-ttl", (*path, "ttlSecondsAfterFinished"), ttl, message)
    elif ttl and not shutdown:
        message = f"ttlSecondsAfterFinished {ttl} has no effect: set shutdownAfterJobFinishes to true"
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


def _submission(spec: Body, path: Path, operator: OperatorContext) -> Found:
    """The submission of the job. The operator reads these fields after the cluster is ready."""
    mode = spec["submissionMode"]
    if mode not in MODES:
        message = f"{mode!r} is not a submission mode, so the job would never start: use one of {', '.join(MODES)}"
        yield problem("job-submission-mode", (*path, "submissionMode"), mode, message)
    if not is_mapping(spec.get("runtimeEnvYAML", "")):
        message = "this is not a YAML mapping: write a runtime environment such as pip: [numpy]"
        yield problem("job-runtime-env", (*path, "runtimeEnvYAML"), spec["runtimeEnvYAML"], message)
    if spec.get("metadata") and "rayClusterSpec" in spec and mode in ("K8sJobMode", "SidecarMode"):
        ray_version = spec["rayClusterSpec"].get("rayVersion", "")
        # Without a version KubeRay 1.7 assumes a Ray that is new enough.
        if ray_version or not operator.since("1.7"):
            yield from _metadata(ray_version, path)
    if mode == "HTTPMode" and not is_json_of_numbers(spec.get("entrypointResources", "")):
        message = "this is not JSON of names and numbers: write for example '{\"TPU\": 1}'"
        yield problem("job-entrypoint-resources", (*path, "entrypointResources"), spec["entrypointResources"], message)
    template = spec.get("submitterPodTemplate")
    if mode == "K8sJobMode" and template is not None and not template.get("spec", {}).get("containers"):
        message = "there is no container: add the container that submits as the first"
        at = (*path, "submitterPodTemplate", "spec", "containers")
        yield problem("job-submitter-containers", at, None, message)


def _metadata(ray_version: str, path: Path) -> Found:
    release = semver_numbers(ray_version)
    if release is None or older(release, _METADATA_SINCE):
        message = f"metadata needs Ray 2.6.0 or later and rayVersion is {ray_version!r}: set it, or remove metadata"
        yield problem("job-metadata", (*path, "rayClusterSpec", "rayVersion"), ray_version or None, message)


_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
"""A later policy must not apply before an earlier one (validateTTLConsistency)."""

_OF_CLUSTER = ("DeleteCluster", "DeleteWorkers")


def _check_deletion(spec: Body, path: Path, gate: bool, autoscaling: bool) -> Found:
    """The rules on a RayJob's deletionStrategy (validateDeletionConfiguration).

    `gate`: whether the feature gate is on; `autoscaling`: whether the job's cluster has the autoscaler.
    """
    strategy = spec.get("deletionStrategy")
    if strategy is None:
        return
    at = (*path, "deletionStrategy")
    if not gate:
        message = (
            "deletionStrategy needs the feature gate RayJobDeletionPolicy of the operator: enable it, or remove this"
        )
        yield problem("deletion-feature-gate", at, None, message)
    rules, legacy = strategy.get("deletionRules"), [name for name in ("onSuccess", "onFailure") if name in strategy]
    if rules is not None and legacy:
        message = f"deletionRules are not allowed together with {' and '.join(legacy)}: write these as rules too"
        yield problem("deletion-strategy-style", at, None, message)
    elif rules is None and len(legacy) < 2:
        message = "deletionStrategy needs deletionRules, or both onSuccess and onFailure: add them"
        yield problem("deletion-strategy-style", at, None, message)
    if rules and spec.get("shutdownAfterJobFinishes"):
        message = "deletionRules and shutdownAfterJobFinishes exclude each other: remove shutdownAfterJobFinishes"
        yield problem("deletion-rules-alone", (*path, "shutdownAfterJobFinishes"), True, message)
    selects = bool(spec.get("clusterSelector"))
    if rules:
        yield from _deletion_rules(rules, (*at, "deletionRules"), selects, autoscaling)
    for name in legacy if rules is None and len(legacy) == 2 else ():
        policy = strategy[name].get("policy")
        yield from _legacy_deletion(
            policy, (*at, name, "policy"), bool(spec.get("shutdownAfterJobFinishes")), selects, autoscaling
        )


def _legacy_deletion(policy: str | None, path: Path, shutdown: bool, selects: bool, autoscaling: bool) -> Found:
    """validateLegacyDeletionPolicies."""
    if policy is None:
        message = "the policy is not set: set it to DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone"
        yield problem("deletion-policy", path, None, message)
    else:
        yield from _possible(policy, path, selects, autoscaling)
    if policy == "DeleteNone" and shutdown:
        message = "DeleteNone contradicts shutdownAfterJobFinishes: remove one of them"
        yield problem("deletion-policy", path, policy, message)


def _possible(policy: str, path: Path, selects: bool, autoscaling: bool) -> Found:
    if selects and policy in _OF_CLUSTER:
        message = f"{policy} is not allowed for a cluster that clusterSelector selects: use DeleteSelf or DeleteNone"
        yield problem("deletion-policy", path, policy, message)
    elif autoscaling and policy == "DeleteWorkers":
        message = (
            "DeleteWorkers is not possible with autoscaling: use DeleteCluster, or set enableInTreeAutoscaling to false"
        )
        yield problem("deletion-policy", path, policy, message)


def _deletion_rules(rules: list[Body], path: Path, selects: bool, autoscaling: bool) -> Found:
    """validateDeletionRules, and the validation rule of the CRD on a condition."""
    seen: dict[str, dict[str, tuple[int, int]]] = {}
    for index, rule in enumerate(rules):
        policy, condition = rule["policy"], rule["condition"]
        statuses = [name for name in ("jobStatus", "jobDeploymentStatus") if name in condition]
        if len(statuses) != 1:
            message = "a condition needs exactly one of jobStatus and jobDeploymentStatus: set one of them"
            yield problem("deletion-condition", (*path, index, "condition"), condition, message)
            continue
        impossible = list(_possible(policy, (*path, index, "policy"), selects, autoscaling))
        if impossible:
            yield from impossible
            continue
        event = f"{statuses[0]} {condition[statuses[0]]}"
        times = seen.setdefault(event, {})
        if policy in times:
            message = f"there are two rules for {policy} on {event}: remove one"
            yield problem("deletion-rule-twice", (*path, index), policy, message)
            continue
        times[policy] = condition["ttlSeconds"], index
    for event, times in seen.items():
        yield from _order(event, times, path)


def _order(event: str, times: Mapping[str, tuple[int, int]], path: Path) -> Found:
    """validateTTLConsistency: first the workers, then the cluster, then the job."""
    ordered = [policy for policy in _ORDER if policy in times]
    for earlier, later in itertools.pairwise(ordered):
        seconds, index = times[later]
        if seconds < times[earlier][0]:
            message = (
                f"on {event}, {later} applies after {seconds} s, before {earlier} after {times[earlier][0]} s: "
                f"give it {times[earlier][0]} or more"
            )
            yield problem("deletion-order", (*path, index, "condition", "ttlSeconds"), seconds, message)


_LONGEST_CRON_JOB = 36
"""Characters of a RayCronJob's name in 1.7, which appends eleven to those of its RayJobs (constant.go:
MaxRayCronJobNameLength)."""


def _new_of_cron_jobs(body: Body) -> Found:
    """What ValidateRayCronJobSpec refuses since 1.7."""
    name, spec = body["metadata"].get("name", ""), body["spec"]
    if len(name) > _LONGEST_CRON_JOB:
        message = f"KubeRay 1.7 makes RayJobs with longer names of it: use at most {_LONGEST_CRON_JOB} characters"
        yield problem("ray-cron-job-name", ("metadata", "name"), name, message)
    if "TZ" in spec["schedule"]:
        message = "KubeRay 1.7 takes no time zone in a schedule: set timeZone"
        yield problem("cron-time-zone", ("spec", "schedule"), spec["schedule"], message)
    zone = spec.get("timeZone", "UTC")
    if not is_zone(zone):
        message = f"{zone!r} is not a time zone: write a name such as Europe/Berlin, or Etc/UTC"
        yield problem("cron-time-zone", ("spec", "timeZone"), zone, message)


def check_cron_job(body: Body, operator: OperatorContext) -> Found:
    """All rules on a RayCronJob (validation.go: ValidateRayCronJobSpec)."""
    spec = body["spec"]
    if not operator.enabled("RayCronJob"):
        message = "the operator serves no RayCronJob without its feature gate RayCronJob: enable it"
        yield problem("cron-feature-gate", ("kind",), body["kind"], message)
    if operator.since("1.7"):
        yield from _new_of_cron_jobs(body)
    if fault := schedule_fault(spec["schedule"]):
        message = f"{spec['schedule']!r} is not a valid schedule, {fault}: write for example '0 3 * * *' or '@daily'"
        yield problem("cron-schedule", ("spec", "schedule"), spec["schedule"], message)
    # The jobs do not inherit its annotations.
    yield from check(spec["jobTemplate"], ("spec", "jobTemplate"), {}, operator)
