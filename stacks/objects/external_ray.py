"""The external clusters of a tenant: the pods that connect to them, where these may connect to, and what refuses
them. Pure functions."""

from collections.abc import Iterator, Mapping

from components.external_cluster.manifests import connection_check
from components.external_cluster.settings import EXTERNAL_LABEL, ExternalClusterSettings
from components.network.manifests import to_address
from components.ray_cluster.manifests import API_VERSION as RAY
from core.body import Body
from core.images import not_allowed
from core.problems import Problem
from kuberay import OperatorContext
from kuberay.pod_security import violations
from kuberay.pod_template import problems_of_template
from kuberay.schema import stored
from stacks.cached import cached
from stacks.objects.access import unknown
from stacks.settings import StackSettings, TenantSettings

_POD = ("spec", "submitterPodTemplate")


def unknown_external(tenant: TenantSettings, name: str) -> Iterator[Problem]:
    """An `externalCluster` of a job that the tenant does not have; the path is in the job's settings."""
    names = [each.name for each in tenant.external_clusters]
    yield from unknown(tenant, ("externalCluster",), name, "external cluster", names, "externalClusters")


@cached
def checks(_: StackSettings, tenant: TenantSettings) -> dict[str, Body]:
    """The Jobs that check the connections, by the names of the external clusters."""
    return {each.name: connection_check(each, tenant.images.pull_secrets) for each in tenant.external_clusters}


def to_external(cluster: ExternalClusterSettings, program: Mapping[str, str] | None = None) -> Body:
    """The NetworkPolicy by which the pods that connect to the cluster, or those of a program by its labels, reach its
    dashboard."""
    address = cluster.dashboard
    cidrs = (address.network,) if address.network else cluster.cidrs
    namespace = address.service[1] if address.service else None
    name = f"run-history.{cluster.name}" if program else f"external.{cluster.name}"
    pods = {"matchLabels": dict(program or {EXTERNAL_LABEL: cluster.name})}
    return to_address(name, pods, namespace, cidrs, (address.port,))


def problems_between_tenants(stack: StackSettings) -> Iterator[Problem]:
    """External clusters in the namespace of another tenant of the stack, whose NetworkPolicies do not admit the pods
    that connect to them."""
    others = {each.namespace_name: each for each in stack.tenants if stack.network.policies and each.network.policies}
    for index, tenant in enumerate(stack.tenants):
        for at, cluster in enumerate(tenant.external_clusters):
            namespace = cluster.dashboard.service[1] if cluster.dashboard.service else None
            other = others.get(namespace or "")
            labels = checks(stack, tenant)[cluster.name]["spec"]["template"]["metadata"]["labels"]
            admitted = {
                peer.namespace
                for peer in (other.network.dashboard_from if other else ())
                if peer.pod_labels.items() <= labels.items()
            }
            if other and other is not tenant and tenant.namespace_name not in admitted:
                message = (
                    f"namespace {namespace!r} is that of tenant {other.name!r}, whose NetworkPolicies do not admit "
                    f"{tenant.namespace_name!r}: add it to the network.dashboardFrom of tenant {other.name!r}"
                )
                path = ("tenants", index, "externalClusters", at, "dashboardAddress")
                yield Problem(path, cluster.dashboard_address, message, "external-not-admitted")


def problems_of_external(
    stack: StackSettings, tenant: TenantSettings, cluster: ExternalClusterSettings, operator: OperatorContext
) -> Iterator[Problem]:
    """Why the pod that checks the connection would be refused; paths are in the cluster's settings."""
    for each in problems_of_pod(tenant, checks(stack, tenant)[cluster.name], operator):
        yield Problem(("image",), cluster.image, each.message, each.rule)


def problems_of_pod(tenant: TenantSettings, body: Body, operator: OperatorContext) -> list[Problem]:
    """Why the API server, Pod Security or the tenant's registries refuse the pod of a Job. Paths are those of a RayJob
    with that pod, whose CRD has the schema of pod templates."""
    template, registries = body["spec"]["template"], tenant.images.registries
    as_ray_job = {"apiVersion": RAY, "kind": "RayJob", "metadata": body["metadata"], "spec": {_POD[1]: template}}
    found = stored(as_ray_job, operator)[1] or list(problems_of_template(template, _POD))
    if found:
        return found
    found = list(violations(template, _POD, tenant.level_in_force))
    for path, image in not_allowed(as_ray_job, registries):
        message = f"image {image!r} is from none of the registries of tenant {tenant.name!r} ({', '.join(registries)})"
        found.append(Problem(path, image, f"{message}: use one from there, or add its registry", "image-registry"))
    return found
