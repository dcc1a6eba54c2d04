"""RayClusters, RayJobs and RayServices that KubeRay, the API server, the scheduler or their tenant's limits would
refuse. Pure functions."""

from collections.abc import Iterator

from components.logs.settings import LogsSettings
from components.network.manifests import DEPLOYED, JOB_LABEL
from components.network.rules import exposed, ingress_not_allowed
from components.payloads import idle_termination, run_history
from components.ray_cluster.problems import (
    due_to_defaults,
    logs_problems,
    not_with_kueue,
    pod_problems,
    redis_problems,
    reworded,
    undone,
    unguarded_gang,
    without_slots,
)
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.settings import RayJobSettings
from components.ray_service.api_key import problems_of_key
from components.ray_service.settings import RayServiceSettings
from core.body import Body
from core.problems import Problem, Problems
from core.versions import UnsupportedVersionError
from kuberay import OperatorContext, validate
from kuberay.demands import problems_of_serving
from kuberay.releases import WORKLOADS_GATE, check_ray, newer_field
from kuberay.rules import groups_of
from stacks.checks.capacity import without_room_for
from stacks.checks.demands import problems_of_job, problems_of_model
from stacks.checks.owners import (
    problems_of_equal_sizes,
    problems_of_its_pods,
    problems_of_references,
    problems_of_submitter,
    problems_with_kueue,
)
from stacks.checks.places import in_cluster, is_in_cluster, of_owner, where_set
from stacks.checks.storage import problems_of_home
from stacks.objects.external_ray import problems_of_external, problems_of_pod
from stacks.objects.logs import logs_of
from stacks.objects.ownership import in_group
from stacks.objects.queues import scheduling_of
from stacks.objects.ray_clusters import (
    redis_place,
    rendered,
    rendered_job,
    rendered_service,
    tenants_images_not_allowed,
)
from stacks.settings import StackSettings, TenantSettings


def problems_of_clusters(stack: StackSettings, group: int | None = None) -> Iterator[Problem]:
    """All problems of a stack's RayClusters, each by itself and a tenant's together. `group`: of its tenants alone."""
    settings = stack.operator_in_force
    if settings.batch_scheduler and settings.feature_gates.get(WORKLOADS_GATE):
        message = (
            f"KubeRay does not start with this gate and the batch scheduler {settings.batch_scheduler}: remove one"
        )
        yield Problem(("operator", "featureGates", WORKLOADS_GATE), True, message, "operator-feature-gate")
    operator = OperatorContext(settings.version, settings.batch_scheduler, dict(settings.feature_gates))
    for index, tenant in enumerate(stack.tenants):
        if group is not None and not in_group(tenant, group, stack):
            continue
        found = list(_of_tenant(tenant, stack, operator))
        yield from (problem.below(("tenants", index)) for problem in found)


def _of_tenant(tenant: TenantSettings, stack: StackSettings, operator: OperatorContext) -> Iterator[Problem]:
    invalid: list[Problem] = []
    for at, cluster in enumerate(tenant.clusters):
        invalid += (each.below(("clusters", at)) for each in _of_cluster(tenant, stack, operator, cluster))
    for path, job in tenant.placed_jobs:
        invalid += (each.below(path) for each in _of_job(tenant, stack, operator, job))
    for path, template, size, job in tenant.placed_sizes:
        # What is wrong with the template itself, it is with each size.
        if not any(each.path[:2] == path for each in invalid):
            found = _of_job(tenant, stack, operator, job)
            invalid += (template.of_size(size, each).below(path) for each in found)
    for at, service in enumerate(tenant.services):
        invalid += (each.below(("services", at)) for each in _of_service(tenant, stack, operator, service))
    yield from invalid
    for at, template in enumerate(tenant.job_templates):
        yield from (each.below(("jobTemplates", at)) for each in problems_of_its_pods(tenant, template))
    if tenant.job_templates and not operator.since("1.6"):
        message = newer_field("RayCronJob, which holds a job template,", "1.6", operator)
        yield Problem(("jobTemplates",), None, message, "newer-field")
    for at, external in enumerate(tenant.external_clusters):
        found = problems_of_external(stack, tenant, external, operator)
        yield from (each.below(("externalClusters", at)) for each in found)
    # A RayCluster with errors has no size yet.
    if not invalid:
        yield from problems_of_equal_sizes(stack, tenant)
        yield from without_room_for(tenant, stack)


def _of_cluster(
    tenant: TenantSettings, stack: StackSettings, operator: OperatorContext, cluster: RayClusterSettings
) -> Iterator[Problem]:
    """The problems of a RayCluster by itself; paths in its settings."""
    # On the platform of another stack, that stack decides whether Ingresses are allowed.
    if stack.platform is None:
        yield from ingress_not_allowed(cluster, tenant.network)
    yield from _too_old(cluster, operator)
    try:
        body = rendered(stack, tenant, cluster)
    except Problems as error:
        yield from error.problems
        return
    refused = [reworded(cluster, each, body) for each in validate(body, operator)]
    yield from _of_body(tenant, stack, cluster, body, refused)
    if stack.scheduler and stack.scheduler.kueue:
        yield from not_with_kueue(cluster, scheduling_of(stack, tenant, cluster), body)


def _of_body(
    tenant: TenantSettings, stack: StackSettings, cluster: RayClusterSettings, body: Body, refused: list[Problem]
) -> Iterator[Problem]:
    """The problems of a rendered RayCluster; paths in its settings. `refused`: those that KubeRay finds, with paths in
    the body, which hide others."""
    place, logs = redis_place(stack, tenant), logs_of(stack, tenant)
    refused = refused or [
        *exposed(cluster, body["spec"]),
        *_opening(body["spec"]),
        *redis_problems(cluster, place, body),
        *logs_problems(cluster, logs, body),
        *_images(tenant, logs, body),
    ]
    refused = refused or [
        *undone(cluster, body),
        *without_slots(body),
        *pod_problems(body, tenant.level_in_force),
    ]
    if by_default := due_to_defaults(cluster, refused):
        refused = [each for each in refused if each.rule != "pod-security"]
    yield from by_default
    if stack.scheduler:
        yield from unguarded_gang(cluster, body)
    if not refused:
        yield from problems_of_home(stack, tenant, cluster, body)
    yield from (where_set(cluster, stack.nodes, body, problem) for problem in refused)


_PROGRAMS = (idle_termination.NAME, run_history.NAME)


def _opening(spec: Body) -> Iterator[Problem]:
    """Labels of pods by which NetworkPolicies know other pods, and open the API server or heads to them; paths in the
    RayCluster."""
    for path, group in groups_of(spec):
        # KubeRay gives pods the labels of both (ray-operator/controllers/ray/common/pod.go: mergeLabels).
        places = {("template", "metadata"): group["template"].get("metadata") or {}, (): group}
        for at, holder in places.items():
            for label, value in (holder.get("labels") or {}).items():
                if label in (JOB_LABEL, *DEPLOYED) or (label == "app.kubernetes.io/name" and value in _PROGRAMS):
                    message = "NetworkPolicies of the stack open connections to pods with this label: use another"
                    yield Problem((*path, *at, "labels", label), value, message, "reserved-label")


def _of_job(
    tenant: TenantSettings, stack: StackSettings, operator: OperatorContext, job: RayJobSettings
) -> Iterator[Problem]:
    """The problems of a RayJob by itself; paths in its settings."""
    if references := list(problems_of_references(stack, tenant, job)):
        yield from references
        return
    own = job.own_cluster
    if own:
        yield from (problem.below(("cluster",)) for problem in _too_old(own, operator))
    try:
        body = rendered_job(stack, tenant, job)
    except Problems as error:
        yield from error.problems
        return
    if job.external_cluster:
        yield from (of_owner(job, body, each) for each in problems_of_pod(tenant, body, operator))
        return
    refused = validate(body, operator)
    of_job = [each for each in refused if not is_in_cluster(each)]
    of_job = of_job or list(problems_of_submitter(job, body, tenant.level_in_force))
    if not refused:
        yield from problems_of_job(stack, tenant, job, body)
    yield from (of_owner(job, body, each) for each in of_job)
    # Without another image, the pod that submits has that of the RayCluster, which is judged there.
    yield from _images(tenant, None, {"submitterPodTemplate": job.submitter_pod_template})
    if own:
        yield from _of_own_cluster(tenant, stack, own, refused)
        yield from problems_with_kueue(stack, tenant, own, job)


def _of_service(
    tenant: TenantSettings, stack: StackSettings, operator: OperatorContext, service: RayServiceSettings
) -> Iterator[Problem]:
    """The problems of a RayService by itself; paths in its settings."""
    yield from (problem.below(("cluster",)) for problem in _too_old(service.own_cluster, operator))
    try:
        body = rendered_service(stack, tenant, service)
    except Problems as error:
        yield from error.problems
        return
    refused = validate(body, operator)
    yield from (of_owner(service, body, each) for each in refused if not is_in_cluster(each))
    yield from _of_own_cluster(tenant, stack, service.own_cluster, refused)
    if not refused:
        if service.api_key:
            yield from problems_of_key(service.config, body["spec"]["rayClusterConfig"])
        yield from problems_of_serving(service.config, body)
        yield from problems_of_model(service, stack.nodes)
    yield from problems_with_kueue(stack, tenant, service.own_cluster)


def _of_own_cluster(
    tenant: TenantSettings, stack: StackSettings, own: RayClusterSettings, refused: list[Problem]
) -> Iterator[Problem]:
    """The problems of the RayCluster of a RayJob or RayService. `refused`: those that KubeRay finds in the whole."""
    cluster = rendered(stack, tenant, own)
    of_cluster = [reworded(own, in_cluster(each), cluster) for each in refused if is_in_cluster(each)]
    found = _of_body(tenant, stack, own, cluster, of_cluster)
    yield from (problem.below(("cluster",)) for problem in found)


def _too_old(cluster: RayClusterSettings, operator: OperatorContext) -> Iterator[Problem]:
    """A Ray version that the operator does not support."""
    try:
        check_ray(operator.version, [cluster.ray_version])
    except UnsupportedVersionError as error:
        yield Problem(("rayVersion",), cluster.ray_version, str(error), "operator-ray-version")


def _images(tenant: TenantSettings, logs: LogsSettings | None, body: Body) -> Iterator[Problem]:
    registries = tenant.images.registries
    for path, image in tenants_images_not_allowed(body, registries, logs):
        message = (
            f"image {image!r} is from none of the registries that tenant {tenant.name!r} may use "
            f"({', '.join(registries)}): use one from there, or add its registry to the tenant's images.registries"
        )
        yield Problem(path, image, message, "image-registry")
