"""The termination of idle RayClusters of a tenant, with the values of the stack. Pure functions."""

from components.idle_termination.manifests import Watched, objects
from components.ray_cluster.pods import Body
from stacks.cached import once
from stacks.objects.access import named_cluster
from stacks.objects.ray_clusters import for_a_program, rendered, with_tenant_defaults
from stacks.settings import StackSettings, TenantSettings


@once
def idle_termination(stack: StackSettings, tenant: TenantSettings) -> dict[str, Body]:
    """The objects that suspend the tenant's idle RayClusters, by part; empty if it has no RayCluster to suspend.

    Raises Problems as `rendered` does.
    """
    watched = []
    for cluster in tenant.clusters:
        if cluster.idle_termination_options:
            spec = rendered(stack, tenant, cluster)["spec"]
            access = named_cluster(cluster.name, spec)
            place = for_a_program(tenant, with_tenant_defaults(tenant, cluster))
            watched.append(Watched(place, spec, access))
    return objects(watched, tenant.namespace_name)
