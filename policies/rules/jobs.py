"""RayJobs, Jobs and CronJobs: how they end, and what they leave behind."""

from collections.abc import Iterator

from core.pods import POD_SECURITY_PREFIX
from core.types import Settings
from kuberay.pod_security import violations
from policies.cel import CelCheck, of_jobs
from policies.rule import Severity, Violations, rule
from policies.rules.accepted import is_well_formed
from policies.values import Node, Object
from policies.walk import Stack

_GUIDE = "https://docs.ray.io/en/latest/cluster/kubernetes/getting-started/rayjob-quick-start.html"
_VALIDATION = "kuberay ray-operator/controllers/ray/utils/validation.go"
_RAY_JOBS = ("RayJob", "RayCronJob")

_ENDS_IN_CEL = "job.?shutdownAfterJobFinishes.orValue(false) == true"
_ON_ANOTHER_IN_CEL = "job.?clusterSelector.orValue({}).size() > 0"
"""Whether it runs on an existing cluster. KubeRay ignores an empty selector."""
_DELETES_IN_CEL = "each.?policy.orValue('DeleteNone') != 'DeleteNone'"
_AT_AN_END_IN_CEL = (
    f"[job.?deletionStrategy.?onSuccess, job.?deletionStrategy.?onFailure].exists(each, {_DELETES_IN_CEL})"
)
_INTERACTIVE_IN_CEL = "job.?submissionMode.orValue('') == 'InteractiveMode'"


def _ray_job(owner: Object) -> Node:
    return owner.root.at("spec") if owner.kind == "RayJob" else owner.root.at("spec", "jobTemplate")


def _on_another(spec: Node) -> bool:
    return any(spec.at("clusterSelector").entries())


def _deletes(end: Node) -> bool:
    return (end.at("policy").text or "DeleteNone") != "DeleteNone"


class TimeToLive(Settings):
    """Options of ray-job-ttl."""

    seconds: int = 86_400
    """The longest time that a cluster may live after its job ends."""


def _ttl_in_cel(options: TimeToLive) -> str:
    by_a_rule = (
        f"job.?deletionStrategy.?deletionRules.orValue([]).exists(each, {_DELETES_IN_CEL}"
        f" && each.?condition.?ttlSeconds.orValue(0) <= {options.seconds})"
    )
    return (
        f"{_ON_ANOTHER_IN_CEL} || ({_ENDS_IN_CEL} || {_AT_AN_END_IN_CEL} || {by_a_rule})"
        f" && job.?ttlSecondsAfterFinished.orValue(0) <= {options.seconds}"
    )


@rule(
    "ray-job-ttl",
    Severity.HIGH,
    what="The cluster of a RayJob goes when the job is done.",
    why="It keeps its GPUs until somebody deletes it.",
    source=_GUIDE,
    fix="Set shutdownAfterJobFinishes: true and ttlSecondsAfterFinished, or deletionStrategy.",
    kinds=_RAY_JOBS,
    cel=of_jobs(_ttl_in_cel),
)
def ttl(owner: Object, options: TimeToLive) -> Violations:
    """The cluster is deleted within the time of the option, or `deletionStrategy` deletes something at some end, by a
    rule within that time. A job with a clusterSelector owns no cluster."""
    spec = _ray_job(owner)
    if _on_another(spec):
        return
    ends, after = spec.at("shutdownAfterJobFinishes"), spec.at("ttlSecondsAfterFinished")
    strategy = spec.at("deletionStrategy")
    times = [each.at("condition", "ttlSeconds") for each in strategy.at("deletionRules").items() if _deletes(each)]
    at_an_end = ends.value is True or _deletes(strategy.at("onSuccess")) or _deletes(strategy.at("onFailure"))
    if not at_an_end and not times:
        yield ends.wrong("its cluster stays when the job is done")
    elif not at_an_end and all((each.number or 0) > options.seconds for each in times):
        yield times[0].wrong(f"no rule deletes anything within {options.seconds} s")
    elif after.number is not None and after.number > options.seconds:
        yield after.wrong(f"{after.shown()} s is longer than {options.seconds} s")


@rule(
    "ray-job-deletion",
    Severity.HIGH,
    what="A RayJob has one setting for what happens to its cluster.",
    why="KubeRay refuses deletionRules together with shutdownAfterJobFinishes, with an event only.",
    source=f"{_VALIDATION}: validateDeletionConfiguration",
    fix="Remove shutdownAfterJobFinishes, or the rules.",
    kinds=_RAY_JOBS,
    cel=of_jobs(f"!(job.?deletionStrategy.?deletionRules.hasValue() && {_ENDS_IN_CEL})"),
)
def deletion(owner: Object) -> Violations:
    """Rejects `shutdownAfterJobFinishes` together with `deletionRules`."""
    spec = _ray_job(owner)
    if spec.at("deletionStrategy", "deletionRules").is_set and spec.at("shutdownAfterJobFinishes").value is True:
        yield spec.at("shutdownAfterJobFinishes").wrong("is not allowed together with deletionStrategy.deletionRules")


@rule(
    "ray-job-deadline",
    Severity.LOW,
    what="A RayJob has a deadline.",
    why="A job that hangs keeps its GPUs.",
    source=_GUIDE,
    fix="Set activeDeadlineSeconds.",
    kinds=_RAY_JOBS,
)
def deadline(owner: Object) -> Violations:
    """Requires `activeDeadlineSeconds`."""
    seconds = _ray_job(owner).at("activeDeadlineSeconds")
    if not seconds.is_set:
        yield seconds.wrong("is not set")


@rule(
    "ray-job-has-cluster",
    Severity.HIGH,
    what="A RayJob has a cluster to run on.",
    why="KubeRay refuses it otherwise, with an event only.",
    source=f"{_VALIDATION}: ValidateRayJobSpec",
    fix="Set rayClusterSpec, or clusterSelector with ray.io/cluster.",
    kinds=_RAY_JOBS,
    cel=of_jobs(
        f"{_ON_ANOTHER_IN_CEL} ? job.clusterSelector[?'ray.io/cluster'].orValue('') != ''"
        " : job.?rayClusterSpec.hasValue()"
    ),
)
def has_cluster(owner: Object) -> Violations:
    """Requires the spec of a cluster, or the name of an existing one."""
    spec = _ray_job(owner)
    if _on_another(spec):
        if not spec.at("clusterSelector", "ray.io/cluster").text:
            yield spec.at("clusterSelector").wrong("does not name ray.io/cluster")
    elif not spec.at("rayClusterSpec").is_set:
        yield spec.at("rayClusterSpec").wrong("is not set")


@rule(
    "ray-job-entrypoint",
    Severity.MEDIUM,
    what="A RayJob has something to run.",
    why="Without an entrypoint only its submitter fails, minutes later.",
    source=_GUIDE,
    fix="Set entrypoint, or submissionMode: InteractiveMode.",
    kinds=_RAY_JOBS,
    cel=of_jobs(
        f"{_INTERACTIVE_IN_CEL} || job.?entrypoint.orValue('') != ''"
        " || job.?submitterPodTemplate.?spec.?containers[?0].?command.hasValue()"
    ),
)
def entrypoint(owner: Object) -> Violations:
    """Requires an entrypoint, interactive mode, or a submitter with its own command."""
    spec = _ray_job(owner)
    has_command = spec.at("submitterPodTemplate", "spec", "containers", 0, "command").is_set
    if spec.at("submissionMode").text != "InteractiveMode" and not has_command and not spec.at("entrypoint").text:
        yield spec.at("entrypoint").wrong("is not set")


@rule(
    "ray-job-submitter",
    Severity.HIGH,
    what="The pod that submits a RayJob can start.",
    why="KubeRay's own has no securityContext. Pod Security restricted refuses it, and the RayJob stays Running.",
    source="kuberay ray-operator/controllers/ray/common/job.go: GetDefaultSubmitterContainer",
    fix="Set submissionMode: HTTPMode, or give K8sJobMode a submitterPodTemplate that meets the level.",
)
def submitter(stack: Stack) -> Violations:
    """In a namespace of level `restricted` the operator submits, or a pod that meets the level. The rule knows levels
    of namespaces that are judged together with the RayJob."""
    level = f"{POD_SECURITY_PREFIX}/enforce"
    restricted = {each.name for each in stack.of("Namespace") if each.label(level).text == "restricted"}
    for owner in stack.of(*_RAY_JOBS):
        if (owner.namespace or "default") in restricted:
            yield from _starts(_ray_job(owner))


def _starts(spec: Node) -> Violations:
    mode, template = spec.at("submissionMode"), spec.at("submitterPodTemplate")
    submits = mode.text or "K8sJobMode"
    if submits == "SidecarMode":
        yield mode.wrong("adds a container without securityContext to the head")
    elif submits == "K8sJobMode" and not template.is_set:
        yield mode.wrong("is K8sJobMode, whose pod has no securityContext")
    elif submits == "K8sJobMode" and is_well_formed(template):  # ray-spec-valid reports another one
        for each in violations(template.value, template.path, "restricted"):
            yield Node(None, spec.owner, each.path).wrong(each.message)


@rule(
    "ray-job-suspend",
    Severity.HIGH,
    what="A RayJob that is suspended can be.",
    why="KubeRay refuses a suspended job that does not own and delete its cluster, with an event only.",
    source=f"{_VALIDATION}: ValidateRayJobSpec",
    fix="Set shutdownAfterJobFinishes: true, and no clusterSelector.",
    kinds=_RAY_JOBS,
    cel=of_jobs(f"job.?suspend.orValue(false) != true || {_ENDS_IN_CEL} && !({_ON_ANOTHER_IN_CEL})"),
)
def suspend(owner: Object) -> Violations:
    """The job owns its cluster, which is deleted with the job."""
    spec = _ray_job(owner)
    if spec.at("suspend").value is not True:
        return
    if spec.at("shutdownAfterJobFinishes").value is not True:
        yield spec.at("suspend").wrong("needs shutdownAfterJobFinishes")
    if _on_another(spec):
        yield spec.at("suspend").wrong("is not allowed beside clusterSelector")


@rule(
    "ray-job-backoff",
    Severity.HIGH,
    what="A RayJob is only tried again where KubeRay can.",
    why="KubeRay refuses backoffLimit in InteractiveMode and with a clusterSelector, with an event only.",
    source=f"{_VALIDATION}: ValidateRayJobSpec",
    fix="Remove backoffLimit.",
    kinds=_RAY_JOBS,
    cel=of_jobs(
        "job.?backoffLimit.orValue(0) == 0"
        f" || job.backoffLimit > 0 && !({_INTERACTIVE_IN_CEL}) && !({_ON_ANOTHER_IN_CEL})"
    ),
)
def backoff(owner: Object) -> Violations:
    """Rejects retries on an existing cluster, and of a job that a person submits."""
    spec = _ray_job(owner)
    tries = spec.at("backoffLimit")
    if not tries.number:
        return
    if tries.number < 0:
        yield tries.wrong(f"{tries.shown()} is less than zero")
    elif spec.at("submissionMode").text == "InteractiveMode" or _on_another(spec):
        yield tries.wrong("is not allowed with InteractiveMode or clusterSelector")


@rule(
    "job-ttl",
    Severity.LOW,
    what="Finished Jobs are deleted.",
    why="Otherwise they and their pods stay, and count for quotas of objects.",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/ttlafterfinished/",
    fix="Set ttlSecondsAfterFinished.",
    kinds=("Job", "CronJob"),
)
def job_ttl(owner: Object) -> Violations:
    """Requires `ttlSecondsAfterFinished` of Jobs. CronJobs limit their history themselves."""
    for spec in _jobs(owner):
        if owner.kind == "Job" and not spec.at("ttlSecondsAfterFinished").is_set:
            yield spec.at("ttlSecondsAfterFinished").wrong("is not set")


def _jobs(owner: Object) -> Iterator[Node]:
    if owner.group == "batch":
        yield owner.root.at("spec") if owner.kind == "Job" else owner.root.at("spec", "jobTemplate", "spec")


@rule(
    "job-cron-concurrency",
    Severity.MEDIUM,
    what="A CronJob does not run beside itself.",
    why="Runs that take longer than the interval pile up until nodes or quotas are full.",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#concurrency-policy",
    fix="Set concurrencyPolicy: Forbid, or Replace.",
    kinds=("CronJob",),
    cel=CelCheck((("batch", "CronJob"),), "object.spec.?concurrencyPolicy.orValue('') in ['Forbid', 'Replace']"),
)
def cron_concurrency(owner: Object) -> Violations:
    """Rejects `Allow`, which is the default."""
    policy = owner.root.at("spec", "concurrencyPolicy")
    if policy.text not in ("Forbid", "Replace"):
        yield policy.wrong(f"is {policy.shown()}" if policy.is_set else "is not set: runs pile up")


@rule(
    "job-restart",
    Severity.HIGH,
    what="Pods of Jobs end.",
    why="The API server refuses another policy. KubeRay passes on the policy of a RayJob's submitter, and waits.",
    source="https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-template",
    fix="Set restartPolicy: Never or OnFailure.",
    kinds=("Job", "CronJob", *_RAY_JOBS),
    cel=of_jobs("job.?submitterPodTemplate.?spec.?restartPolicy.orValue('Never') in ['Never', 'OnFailure']"),
)
def job_restart(owner: Object) -> Violations:
    """Requires `Never` or `OnFailure`. KubeRay sets `Never` for a submitter without a restartPolicy."""
    for spec in _jobs(owner):
        policy = spec.at("template", "spec", "restartPolicy")
        if policy.text not in ("Never", "OnFailure"):
            yield policy.wrong(f"is {policy.shown()}" if policy.is_set else "is not set")
    if owner.kind in _RAY_JOBS:
        policy = _ray_job(owner).at("submitterPodTemplate", "spec", "restartPolicy")
        if policy.is_set and policy.text not in ("Never", "OnFailure"):
            yield policy.wrong(f"is {policy.shown()}")
