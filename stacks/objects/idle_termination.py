"""The termination of idle RayClusters of a tenant, with the values of the stack. Pure functions."""

from components.idle_termination.manifests import Watched, objects
from core.body import Body
from stacks.cached import cached
from stacks.objects.access import named_cluster
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
    return objects(watched, tenant.namespace_name)
