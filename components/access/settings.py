"""What a stack file may say about the account that Ray's pods run as."""

from ..types import DnsSubdomain, Settings


class RayDeployerSettings(Settings):
    """The ServiceAccount that code on a RayCluster may make pods, Deployments and Services with, and its Role."""

    service_account: DnsSubdomain = "ray-deployer"
    """Name of the ServiceAccount; RayClusters of the tenant run as it."""

    role: DnsSubdomain = "ray-deployer"
    """Name of the Role."""

    role_binding: DnsSubdomain = "ray-deployer"
    """Name of the RoleBinding."""
