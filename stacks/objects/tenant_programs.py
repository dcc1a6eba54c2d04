"""Programs of a tenant beside its RayClusters, with the values of the stack: the termination of idle ones, and the run
history. Pure functions."""

from collections.abc import Iterator

from components.idle_termination.manifests import Watched
from components.idle_termination.manifests import objects as of_idle_termination
from components.payloads.run_history import NAME
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.settings import RayJobSettings
from components.run_history.manifests import objects as of_run_history
from components.run_history.settings import LEAST_TTL_SECONDS
from core.body import Body
from core.problems import Path, Problem
from core.quantities import amount
from stacks.cached import cached
from stacks.objects.access import admins_of, named_cluster, unknown
from stacks.objects.ray_clusters import rendered, with_pod_defaults, with_tenant_defaults
from stacks.settings import StackSettings, TenantSettings


@cached
def idle_termination(stack: StackSettings, tenant: TenantSettings) -> dict[str, Body]:
    """The objects that suspend the tenant's idle RayClusters, by part; empty if it has no RayCluster to suspend.

    Raises Problems as `rendered` does.
    """
    watched = []
    for cluster in tenant.clusters:
        if cluster.idle_termination_options:
            spec = rendered(stack, tenant, cluster)["spec"]
            access = named_cluster(cluster.name, spec)
            place = with_pod_defaults(tenant, with_tenant_defaults(tenant, cluster))
            watched.append(Watched(place, spec, access))
    return of_idle_termination(watched, tenant.namespace_name)


_ANY_RAY = "2.60.0"
"""The pod runs no Ray."""


@cached
def run_history(stack: StackSettings, tenant: TenantSettings) -> dict[str, Body]:
    """The objects that keep the tenant's run history, by part; empty if it has none."""
    settings = tenant.run_history
    storage = next((each for each in tenant.storage if settings and each.name == settings.storage), None)
    place = _place(tenant)
    if settings is None or storage is None or place is None:
        return {}
    readers = [*admins_of(stack.access.cluster_admins, tenant), *(each.subject for each in tenant.users)]
    namespace, external = tenant.namespace_name, tenant.external_clusters
    others = [each.namespace_name for each in stack.tenants]
    return of_run_history(settings, namespace, place, storage.claim_name, readers, external, others)


def problems_of_history(stack: StackSettings, tenant: TenantSettings) -> Iterator[Problem]:
    """What is wrong with a tenant's run history beside its other settings; paths in the tenant's settings."""
    settings = tenant.run_history
    if settings is None:
        return
    names = [each.name for each in tenant.storage]
    yield from unknown(tenant, ("runHistory", "storage"), settings.storage, "storage", names, "the tenant's storage")
    held = next((each.size for each in tenant.storage if each.name == settings.storage), None)
    if held and amount(settings.log_size) > amount(held):
        message = f"{settings.log_size} of one log is more than the {held} of storage {settings.storage!r}: set less"
        yield Problem(("runHistory", "logSize"), settings.log_size, message, "run-history-size")
    if _place(tenant) is None:
        message = f"tenant {tenant.name!r} has no RayCluster, job or service whose image the pod could have: set image"
        yield Problem(("runHistory",), None, message, "run-history-image")
    for place, job in tenant.placed_jobs:
        if settings.needs_head(job.submission_mode):
            yield from (problem.below(place) for problem in _too_short(job))


def _too_short(job: RayJobSettings) -> Iterator[Problem]:
    """A cluster that may be gone before its head is read."""
    times: list[tuple[Path, int | None]] = [(("ttlSecondsAfterFinished",), job.ttl_seconds_after_finished)]
    if job.deletion_strategy:
        times += [
            (("deletionStrategy", "deletionRules", at, "condition", "ttlSeconds"), each.condition.ttl_seconds)
            for at, each in enumerate(job.deletion_strategy.deletion_rules)
            if each.policy == "DeleteCluster"
        ]
    for path, seconds in times:
        if seconds is not None and seconds < LEAST_TTL_SECONDS:
            message = (
                f"runHistory reads the head of an ended job (readHeads, or SidecarMode), for which it needs "
                f"{LEAST_TTL_SECONDS} seconds: set {LEAST_TTL_SECONDS} or more"
            )
            yield Problem(path, seconds, message, "run-history-ttl")


def _place(tenant: TenantSettings) -> RayClusterSettings | None:
    """The tenant's first RayCluster, with its defaults: of it, the pod has the image and the pull secrets. None if
    there is neither one nor an image."""
    first = next(iter(tenant.all_clusters), None)
    if first is None and tenant.run_history and tenant.run_history.image:
        first = RayClusterSettings(name=NAME, ray_version=_ANY_RAY, image=tenant.run_history.image)
    return with_pod_defaults(tenant, with_tenant_defaults(tenant, first)) if first else None
