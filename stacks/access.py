"""Which RayClusters the people of a tenant may use, and which ServiceAccounts the pods run as. Pure functions."""

from collections.abc import Iterable, Iterator

from components.access.personas import NamedCluster
from components.access.settings import Subject
from components.ray_cluster.settings import RayClusterSettings
from kuberay.names import derived

from .rendered import Body, rendered
from .settings import StackSettings, TenantSettings

_EVERY_POD = "default"
"""ServiceAccount of a pod that sets none."""


def named_clusters(stack: StackSettings, tenant: TenantSettings) -> Iterator[NamedCluster]:
    """The tenant's RayClusters, and those of a separate stack, which are assumed to use a token each."""
    for cluster in tenant.clusters:
        yield _of_this_stack(cluster, rendered(stack, tenant, cluster)["spec"])
    for name in tenant.cluster_names:
        yield NamedCluster(name, derived(name))


def admins_of(cluster_admins: Iterable[Subject], tenant: TenantSettings) -> tuple[Subject, ...]:
    """Who manages the tenant's RayClusters: the cluster admins and the tenant's own admins."""
    return tuple(dict.fromkeys([*cluster_admins, *tenant.admins]))


def own_accounts(tenant: TenantSettings) -> list[str]:
    """ServiceAccounts that the stack creates for RayClusters, beside that of the RayDeployer."""
    if tenant.ray_deployer:
        return []
    accounts = [tenant.service_account(cluster) for cluster in tenant.clusters if not cluster.service_account]
    return list(dict.fromkeys(account for account in accounts if account))


def _of_this_stack(cluster: RayClusterSettings, spec: Body) -> NamedCluster:
    """Read from the spec, because overrides and pod templates can differ from the settings."""
    options = spec.get("authOptions") or {}
    if options.get("mode") != "token":
        return NamedCluster(cluster.name)
    if not options.get("enableK8sTokenAuth"):
        return NamedCluster(cluster.name, options.get("secretName") or derived(cluster.name))
    pods = [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or [])]
    accounts = [group["template"]["spec"].get("serviceAccountName") or _EVERY_POD for group in pods]
    return NamedCluster(cluster.name, accounts=tuple(dict.fromkeys(accounts)))
