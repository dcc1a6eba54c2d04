"""Rules for RayJobs and RayServices, which have RayClusters of their own, that depend on these and on the rest of the
stack: scheduler, namespace, other RayClusters. Pure functions."""

from collections.abc import Iterator, Sequence

from components.job_template.settings import JobTemplateSettings
from components.ray_cluster.problems import not_with_kueue
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.manifests import SUBMITTER
from components.ray_job.settings import RayJobSettings
from core.body import Body
from core.pods import PodSecurityLevel
from core.problems import Path, Problem
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from stacks.objects.access import unknown_cluster
from stacks.objects.external_ray import unknown_external
from stacks.objects.queues import scheduling_of
from stacks.objects.ray_clusters import rendered, rendered_job
from stacks.settings import StackSettings, TenantSettings

_SUBMITTER_AT: Path = ("spec", "submitterPodTemplate")


def problems_of_references(stack: StackSettings, tenant: TenantSettings, job: RayJobSettings) -> Iterator[Problem]:
    """A cluster that does not exist, or on which KubeRay would never start the job; paths are in the job's settings."""
    if job.external_cluster:
        yield from unknown_external(tenant, job.external_cluster)
    if job.cluster_selector is None:
        return
    path, name = ("clusterSelector", "ray.io/cluster"), job.cluster_selector.cluster
    if unknown := list(unknown_cluster(tenant, path, name)):
        yield from unknown
    elif stack.operator_in_force.batch_scheduler == "volcano":
        message = (
            "with Volcano, KubeRay starts no RayJob on an existing RayCluster: give the job a cluster, or "
            "submit it to the RayCluster's jobs API (`ray job submit`)"
        )
        yield Problem(path, name, message, "scheduler-ray-job")
    elif any(each.name == name and each.overrides.get("suspend") is True for each in tenant.clusters):
        message = f"{name!r} is suspended (overrides.suspend), so that the job would wait: resume it, or use another"
        yield Problem(path, name, message, "job-cluster")


def problems_with_kueue(
    stack: StackSettings, tenant: TenantSettings, own: RayClusterSettings, job: RayJobSettings | None = None
) -> Iterator[Problem]:
    """What Kueue's webhooks refuse of a RayJob or RayService (kueue, pkg/controller/jobs/rayjob/rayjob_webhook.go:
    validateCreate), and a RayService that scales: of its two RayClusters together Kueue lets as many pods start as of
    one (pkg/controller/elasticjobs/elastic_job_ungater.go: podsToUngate). Paths are in its settings. `own`: its
    RayCluster."""
    if stack.scheduler is None or stack.scheduler.kueue is None:
        return
    scheduling, submits = scheduling_of(stack, tenant, own), job is not None and job.submission_mode == "K8sJobMode"
    found = not_with_kueue(own, scheduling, rendered(stack, tenant, own), others=2 if submits else 1)
    yield from (problem.below(("cluster",)) for problem in found)
    if scheduling.queue is not None and own.scales and job is None:
        message = (
            "Kueue admits no second RayCluster of a RayService that scales, so that an edit would never be applied: "
            "set autoscaling to false, and replicas of its workers"
        )
        yield Problem(("cluster", "autoscaling"), None, message, "not-with-kueue")
    if scheduling.queue is not None and job and not job.shuts_down:
        message = (
            "Kueue refuses a RayJob that keeps its cluster, because the cluster keeps its place in the queue: remove "
            "deletionStrategy, and shutdownAfterJobFinishes if it is false"
        )
        yield Problem(("shutdownAfterJobFinishes",), None, message, "not-with-kueue")


def problems_of_its_pods(tenant: TenantSettings, template: JobTemplateSettings) -> Iterator[Problem]:
    """A schedule whose pods would have no image, and no pod for the code of runs; paths are in the template's
    settings."""
    selector = template.cluster_selector
    unknown = selector is not None and selector.cluster not in {each.name for each in tenant.clusters}
    if template.local_code and unknown and not template.submitter_pod_template:
        message = (
            "the pod that submits has the image of the template's RayCluster, which is not known here: give the "
            f"template a cluster of its own, or a submitterPodTemplate with a container {SUBMITTER}"
        )
        yield Problem(("localCode",), True, message, "job-template-code")
    if template.cron and unknown:
        message = (
            "the pod that starts the runs has the image of the template's RayCluster, which is not known here: give "
            "the template a cluster of its own, or start its runs from elsewhere"
        )
        yield Problem(("cron",), None, message, "job-template-schedule")


def problems_of_equal_sizes(stack: StackSettings, tenant: TenantSettings) -> Iterator[Problem]:
    """Sizes of a job template whose runs would not differ; paths are in the tenant's settings."""
    seen: dict[Path, list[tuple[str, Body]]] = {}
    for path, template, size, job in tenant.placed_sizes:
        own = rendered_job(stack, tenant, template.job)["spec"]
        others, spec = (
            seen.setdefault(path, [("cluster, which runs have without a size", own)]),
            rendered_job(stack, tenant, job)["spec"],
        )
        if same := next((name for name, body in others if body == spec), None):
            message = f"is the same as {same}: change its counts or resources, or remove the size"
            yield Problem((*path, "sizes", size), None, message, "job-template-size")
        others.append((f"size {size!r}", spec))


def problems_of_submitter(job: RayJobSettings, body: Body, level: PodSecurityLevel) -> Sequence[Problem]:
    """Why the job would never be submitted: the API server or Pod Security refuses the pod that submits it. Paths are
    in the body. `level`: the Pod Security level of the namespace."""
    if job.submission_mode == "SidecarMode" and level == "restricted":
        message = (
            "KubeRay adds a container without a security context to the head, which the tenant's podSecurity "
            "restricted refuses: use K8sJobMode or HTTPMode"
        )
        return [Problem(("spec", "submissionMode"), job.submission_mode, message, "pod-security")]
    if job.submission_mode != "K8sJobMode":
        return []
    template = body["spec"].get("submitterPodTemplate")
    if template is not None:
        return list(problems_of_template(template, _SUBMITTER_AT)) or list(violations(template, _SUBMITTER_AT, level))
    if level == "restricted":
        message = (
            "KubeRay's pod that submits has no security context, which the tenant's podSecurity restricted refuses, "
            "and the image of this RayCluster is not known here: set submissionMode to HTTPMode, or give "
            f"submitterPodTemplate with a container {SUBMITTER}"
        )
        return [Problem(("spec", "submissionMode"), job.submission_mode, message, "pod-security")]
    return []
