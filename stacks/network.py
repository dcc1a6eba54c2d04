"""The NetworkPolicies of a stack: what its parts say of who reaches what, put together."""

from components.network import manifests
from components.network.manifests import Body, Openings, RayPods
from components.ray_cluster.manifests import head_ports, ray_cluster
from components.ray_cluster.settings import RayClusterSettings

from .settings import StackSettings, TenantSettings


def operator_policies(stack: StackSettings) -> list[Body]:
    """The policies of the operator's namespace; none where the namespace is another's."""
    if not stack.network.policies or stack.operator.install == "existing":
        return []
    return manifests.operator_policies(stack.network, stack.operator.namespace, stack.operator.watch_namespaces)


def tenant_policies(stack: StackSettings, tenant: TenantSettings) -> list[Body]:
    """The policies of a tenant's namespace: nothing but DNS, then what its RayClusters need and what is said."""
    said = tenant.network
    if not (stack.network.policies and said.policies):
        return []
    openings = Openings(said.dashboard_from, said.client_from, said.serve_from)
    clusters = [*_said(stack, tenant), *(RayPods(name, ingress=said.ingress) for name in tenant.cluster_names)]
    if said.other_clusters:
        clusters.append(RayPods(other_than=tuple(each.name for each in clusters)))
    dashboards = {each.ports["dashboard"] for each in clusters}
    return [
        manifests.default_deny(),
        manifests.dns(stack.network.dns),
        *([manifests.submitters(dashboards)] if clusters else []),
        *([manifests.egress(said.egress)] if said.egress else []),
        *(
            policy
            for pods in clusters
            for policy in manifests.ray_policies(pods, openings, stack.network, stack.operator.namespace)
        ),
    ]


def _said(stack: StackSettings, tenant: TenantSettings) -> list[RayPods]:
    return [_ray_pods(cluster, ray_cluster(cluster, stack.nodes)["spec"]) for cluster in tenant.clusters]


def _ray_pods(cluster: RayClusterSettings, spec: Body) -> RayPods:
    return RayPods(
        cluster.name,
        ports=head_ports(spec),
        workers_ask_api_server=bool((spec.get("authOptions") or {}).get("enableK8sTokenAuth")),
        ingress=cluster.ingress is not None,
    )
