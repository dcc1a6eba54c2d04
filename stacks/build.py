"""All resources of a stack."""

from typing import Any

import pulumi
import pulumi_kubernetes

from .platform import Platform
from .settings import PROJECT, StackSettings
from .tenant import Tenant, TenantArgs


def build(settings: StackSettings) -> dict[str, Any]:
    """Makes the stack's resources. Returns its outputs by name.

    `clusters`: by `<namespace>/<name>`, each RayCluster's head service, addresses, worker groups, GPUs of the greatest
    worker, and state. `operator`: version and namespace.
    """
    provider = pulumi_kubernetes.Provider(
        "cluster",
        context=settings.kubernetes.context,
        # A stack is for one cluster: another path, port or credential of its kubeconfig must not replace everything.
        cluster_identifier=f"{PROJECT}/{pulumi.get_stack()}",
    )
    on_cluster = pulumi.ResourceOptions(providers=[provider])
    platform = Platform("platform", settings, on_cluster)
    tenants = [
        Tenant(
            # As unique as the tenant's name, and what `<namespace>/<cluster>` begins with everywhere else.
            tenant.namespace_name,
            TenantArgs(
                settings=tenant,
                pools=settings.nodes,
                namespace=platform.namespaces[tenant.name],
                priorities=settings.priority_classes.names,
                operator_namespace=settings.operator.namespace,
                context=settings.kubernetes.context,
            ),
            pulumi.ResourceOptions(providers=[provider], depends_on=[platform.operator, platform.priority_classes]),
        )
        for tenant in settings.tenants
    ]
    return {
        "operator": {"version": platform.operator.version, "namespace": platform.operator.namespace},
        "clusters": {name: cluster for tenant in tenants for name, cluster in tenant.clusters.items()},
    }
