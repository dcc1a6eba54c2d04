"""All resources of a stack."""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes

from components.images import with_mirrors

from .network import tenant_policies
from .other_platform import other_platform
from .platform import Platform
from .queues import scheduling_of
from .rendered import redis_place
from .settings import PROJECT, StackSettings, TenantSettings
from .tenant import Tenant, TenantArgs, TenantClusters, TenantClustersArgs
from .tenant_only import told


def build(settings: StackSettings) -> dict[str, Any]:
    """Makes the stack's resources. Returns its outputs by name.

    `clusters`: by `<namespace>/<name>`, each RayCluster's head service, addresses, worker groups, GPUs of the greatest
    worker, and state. `operator`: version and namespace. Where the platform is this stack's, `tenants`,
    `priorityClasses` and, if it has one, `scheduler`: what stacks of the tenants' own are held against
    (`tenant_only.told`).
    """
    provider = pulumi_kubernetes.Provider(
        "cluster",
        context=settings.kubernetes.context,
        # A stack is for one cluster: another path, port or credential of its kubeconfig must not replace everything.
        cluster_identifier=f"{PROJECT}/{pulumi.get_stack()}",
    )
    # What everything at the top has, and what is below it inherits.
    everywhere = pulumi.ResourceOptions(
        providers=[provider], transformations=[_mirroring(settings.images.mirrors)] if settings.images.mirrors else []
    )
    return _tenants_alone(settings, everywhere) if settings.platform else _whole(settings, everywhere)


def _whole(settings: StackSettings, everywhere: pulumi.ResourceOptions) -> dict[str, Any]:
    platform = Platform("platform", settings, everywhere)
    tenants = [
        Tenant(
            # As unique as the tenant's name, and what `<namespace>/<cluster>` begins with everywhere else.
            tenant.namespace_name,
            TenantArgs(
                clusters=_clusters(settings, tenant, platform.namespaces[tenant.name]),
                cluster_admins=settings.access.cluster_admins,
                policies=tenant_policies(settings, tenant),
            ),
            pulumi.ResourceOptions.merge(everywhere, _after(platform, tenant)),
        )
        for tenant in settings.tenants
    ]
    return {
        "operator": {"version": platform.operator.version, "namespace": platform.operator.namespace},
        "clusters": {name: cluster for tenant in tenants for name, cluster in tenant.clusters.items()},
        **told(settings),
        **_scheduler(settings, platform),
    }


def _scheduler(settings: StackSettings, platform: Platform) -> dict[str, Any]:
    if settings.scheduler is None or platform.scheduler is None:
        return {}
    return {"scheduler": {"name": settings.scheduler.backend, "version": platform.scheduler.version}}


def _after(platform: Platform, tenant: TenantSettings) -> pulumi.ResourceOptions:
    """What a tenant's RayClusters need, and what therefore outlives them."""
    redis = platform.redis.get(tenant.name)
    rest = [each for each in (redis, platform.queues, platform.admission_policies) if each]
    return pulumi.ResourceOptions(depends_on=[platform.operator, platform.priority_classes, *rest])


def _tenants_alone(settings: StackSettings, everywhere: pulumi.ResourceOptions) -> dict[str, Any]:
    platform = other_platform(settings)
    tenants = [
        TenantClusters(
            tenant.namespace_name,
            _clusters(settings, tenant, platform.namespaces[tenant.name], platform.accounts.get(tenant.name)),
            everywhere,
        )
        for tenant in settings.tenants
    ]
    return {
        "operator": platform.operator,
        "clusters": {name: cluster for tenant in tenants for name, cluster in tenant.clusters.items()},
    }


def _clusters(
    settings: StackSettings,
    tenant: TenantSettings,
    namespace: pulumi.Input[str],
    service_account: pulumi.Input[str | None] = None,
) -> TenantClustersArgs:
    return TenantClustersArgs(
        settings=tenant,
        pools=settings.nodes,
        namespace=namespace,
        priorities=settings.priorities.names,
        operator_namespace=settings.operator.namespace,
        service_account=service_account,
        context=settings.kubernetes.context,
        redis=redis_place(settings, tenant),
        scheduling={cluster.name: scheduling_of(settings, tenant, cluster) for cluster in tenant.clusters},
    )


def _mirroring(mirrors: Mapping[str, str]) -> pulumi.ResourceTransformation:
    """Rewrites the names of images in every object of Kubernetes, whatever component makes it."""

    def rewrite(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.type_.startswith("kubernetes:"):
            return None
        return pulumi.ResourceTransformationResult(with_mirrors(args.props, mirrors), args.opts)

    return rewrite
