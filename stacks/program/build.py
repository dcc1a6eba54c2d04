"""All resources of a stack."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from typing import Any

import pulumi
import pulumi_kubernetes

from components.cluster import Cluster
from components.crds.provider import OUTPUT, OUTPUTS
from components.kubernetes_cluster import KubernetesCluster
from components.state import Outputs, last_outputs, whole
from core.environment import environment_of
from core.images import with_mirrors
from core.stack_file import PROJECT
from stacks.checks.advice import advice
from stacks.objects.access import named_clusters
from stacks.objects.cml import without_kubernetes
from stacks.objects.external_ray import checks
from stacks.objects.idle_termination import idle_termination
from stacks.objects.logs import log_collectors, logs_of
from stacks.objects.network import tenant_policies
from stacks.objects.ownership import Part, part_of
from stacks.objects.platform_outputs import exported
from stacks.objects.queues import scheduling_of
from stacks.objects.ray_clusters import (
    redis_place,
    rendered_job,
    rendered_service,
    template_objects,
    with_ray_dashboard,
)
from stacks.objects.run_history import run_history
from stacks.program.foreign import refuse_foreign
from stacks.program.identity import OUTPUT as OUTPUT_OF_CLUSTER
from stacks.program.identity import OtherClusterError, connection_of, uid_of
from stacks.program.platform import Platform, other_platform
from stacks.program.tenant import Tenant, TenantArgs, TenantClusters, TenantClustersArgs
from stacks.settings import StackSettings, TenantSettings


@contextmanager
def _without_stack_traces() -> Iterator[None]:
    """Resources registered meanwhile have no stack trace in the state.

    Pulumi's SDK sends the Python stack of each registration (pulumi 3.259, runtime/resource.py, _get_stack_trace), and
    the engine stores it in the state: 1.4 kB per resource. Here it would be the same few lines of a component for all
    resources of a kind; the stack file has what distinguishes them. If the SDK can see only one frame, its own, it
    sends none.
    """
    before = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = 1
    try:
        yield
    finally:
        if before is None:
            del sys.tracebacklimit
        else:
            sys.tracebacklimit = before


@_without_stack_traces()
def build(settings: StackSettings, opts: pulumi.ResourceOptions | None = None) -> dict[str, Any]:
    """Creates the stack's resources. Returns its outputs by name. `opts`: of all top-level resources.

    `clusters`: by `<namespace>/<name>`, each RayCluster's head service, addresses, worker groups, GPUs of the largest
    worker, and state. `operator`: version and namespace. If this stack has the platform, `crds`: whether the state
    contains CRDs (`crds.rows`); and `tenants`, `priorityClasses` and, if it has one, `scheduler`: separate stacks of
    tenants are validated against these (`platform_outputs.exported`). `split`, if the environment is split: the number
    of tenants' stacks. `kubernetes`: the UID of the cluster, which later updates compare (`identity.uid_of`).
    `cmlClusters`: by name the same of clusters on Cloudera ML, `cmlTokens` their tokens, and `cmlServeKeys` the keys
    for what they serve; both are secrets.

    Raises StackFileError, and pulumi.RunError if the stack's state contains resources that belong to another stack now,
    or the cluster is not the stack's.
    """
    stack = pulumi.get_stack()
    part = part_of(settings, stack)
    last = last_outputs()
    refuse_foreign(part, stack, last)
    for each in advice(settings, stack, date.today()) if part.platform else ():
        pulumi.log.warn(str(each))
    on_cml = _on_cml(settings, opts) if part.platform else {}
    if without_kubernetes(settings):
        return on_cml
    cluster = KubernetesCluster(connection_of(settings))
    uid = _uid(cluster, settings, last)
    provider = pulumi_kubernetes.Provider(
        "cluster",
        context=cluster.connection.context,
        kubeconfig=cluster.connection.kubeconfig,
        # A stack is for one cluster: another path, port or credential of its kubeconfig must not replace all resources.
        cluster_identifier=f"{PROJECT}/{environment_of(stack)}",
        opts=opts,
    )
    # Options of all top-level resources; their children inherit them.
    mirroring = [_mirroring(settings.images.mirrors)] if settings.images.mirrors else []
    everywhere = pulumi.ResourceOptions.merge(
        opts, pulumi.ResourceOptions(providers=[provider], transformations=mirroring)
    )
    outputs = (
        _tenants_alone(settings, cluster, everywhere, last)
        if settings.platform
        else {**_with_platform(settings, part, cluster, everywhere, last), **on_cml}
    )
    return {**outputs, **({OUTPUT_OF_CLUSTER: {"cluster": uid}} if uid else {})}


def _uid(cluster: Cluster, settings: StackSettings, last: Outputs) -> str | None:
    """The UID of the stack's cluster. Raises pulumi.RunError if it is another one."""
    try:
        return uid_of(cluster, settings, last)
    except OtherClusterError as error:
        raise pulumi.RunError(str(error)) from error


def _on_cml(settings: StackSettings, opts: pulumi.ResourceOptions | None) -> dict[str, Any]:
    """The clusters on Cloudera ML, and their outputs."""
    if settings.cml is None:
        return {}
    # Only stacks with such clusters need its client.
    from components.cml.component import CmlRayCluster, CmlRayClusterArgs

    made = {
        cluster.name: CmlRayCluster(f"cml-{cluster.name}", CmlRayClusterArgs(settings.cml, cluster), opts)
        for cluster in settings.cml.clusters
    }
    keys = {name: cluster.serve_key for name, cluster in made.items() if cluster.serve_key is not None}
    return {
        "cmlClusters": {name: cluster.summary for name, cluster in made.items()},
        "cmlTokens": {name: cluster.token for name, cluster in made.items()},
        **({"cmlServeKeys": keys} if keys else {}),
    }


def _with_platform(
    settings: StackSettings, part: Part, cluster: Cluster, everywhere: pulumi.ResourceOptions, last: Outputs
) -> dict[str, Any]:
    platform = Platform("platform", settings, part, cluster, everywhere)
    tenants = [
        Tenant(
            # As unique as the tenant's name, and the prefix of `<namespace>/<cluster>` everywhere else.
            tenant.namespace_name,
            TenantArgs(
                clusters=_clusters(settings, tenant, cluster, last, platform.namespaces[tenant.name]),
                named=tuple(named_clusters(settings, tenant)),
                cluster_admins=settings.access.cluster_admins,
                policies=tenant_policies(settings, tenant),
                templates={
                    name: body
                    for template in tenant.job_templates
                    for name, body in template_objects(settings, tenant, template).items()
                },
                log_collectors=log_collectors(settings, tenant),
                idle_termination=idle_termination(settings, tenant),
                run_history=run_history(settings, tenant),
            ),
            pulumi.ResourceOptions.merge(everywhere, _after(platform, tenant)),
        )
        for tenant in part.tenants(settings)
    ]
    outputs: dict[str, Any] = {"split": part.groups} if part.groups else {}
    if platform.operator:
        outputs["operator"] = {"version": platform.operator.version, "namespace": platform.operator.namespace}
        outputs |= {OUTPUT: OUTPUTS[platform.rows], **exported(settings), **_scheduler(settings, platform)}
    if tenants or not part.groups:
        outputs["clusters"] = {name: cluster for tenant in tenants for name, cluster in tenant.clusters.items()}
    if jobs := {name: job for tenant in tenants for name, job in tenant.jobs.items()}:
        outputs["jobs"] = jobs
    if services := {name: service for tenant in tenants for name, service in tenant.services.items()}:
        outputs["services"] = services
    return outputs


def _scheduler(settings: StackSettings, platform: Platform) -> dict[str, Any]:
    if settings.scheduler is None or platform.scheduler is None:
        return {}
    return {"scheduler": {"name": settings.scheduler.backend, "version": platform.scheduler.version}}


def _after(platform: Platform, tenant: TenantSettings) -> pulumi.ResourceOptions:
    """What a tenant's RayClusters depend on, and what is therefore deleted after them."""
    redis = platform.redis.get(tenant.name)
    restrictions = (platform.restrictions, platform.admission_policies)
    parts = (platform.operator, platform.priority_classes, redis, platform.queues, *restrictions)
    return pulumi.ResourceOptions(depends_on=[whole(part) for part in parts if part])


def _tenants_alone(
    settings: StackSettings, cluster: Cluster, everywhere: pulumi.ResourceOptions, last: Outputs
) -> dict[str, Any]:
    platform = other_platform(settings)
    tenants = [
        TenantClusters(
            tenant.namespace_name,
            _clusters(
                settings, tenant, cluster, last, platform.namespaces[tenant.name], platform.accounts.get(tenant.name)
            ),
            everywhere,
        )
        for tenant in settings.tenants
    ]
    outputs: dict[str, Any] = {
        "operator": platform.operator,
        "clusters": {name: cluster for tenant in tenants for name, cluster in tenant.clusters.items()},
    }
    if jobs := {name: job for tenant in tenants for name, job in tenant.jobs.items()}:
        outputs["jobs"] = jobs
    if services := {name: service for tenant in tenants for name, service in tenant.services.items()}:
        outputs["services"] = services
    return outputs


def _clusters(
    settings: StackSettings,
    tenant: TenantSettings,
    cluster: Cluster,
    last: Outputs,
    namespace: pulumi.Input[str],
    service_account: pulumi.Input[str | None] = None,
) -> TenantClustersArgs:
    clusters = tuple(with_ray_dashboard(settings, cluster) for cluster in tenant.clusters)
    return TenantClustersArgs(
        settings=tenant.model_copy(update={"clusters": clusters}),
        pools=settings.nodes,
        namespace=namespace,
        priorities=settings.priorities.names,
        operator_namespace=settings.operator.namespace,
        service_account=service_account,
        cluster=cluster,
        redis=redis_place(settings, tenant),
        scheduling={cluster.name: scheduling_of(settings, tenant, cluster) for cluster in tenant.all_clusters},
        logs=logs_of(settings, tenant),
        jobs={job.name: rendered_job(settings, tenant, job) for job in tenant.jobs},
        checks=checks(settings, tenant),
        services={service.name: rendered_service(settings, tenant, service) for service in tenant.services},
        last=last.get("clusters") or {},
        last_jobs=last.get("jobs") or {},
        last_services=last.get("services") or {},
    )


def _mirroring(mirrors: Mapping[str, str]) -> pulumi.ResourceTransformation:
    """Rewrites the image names in every Kubernetes object, whatever component creates it."""

    def rewrite(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.type_.startswith("kubernetes:"):
            return None
        return pulumi.ResourceTransformationResult(with_mirrors(args.props, mirrors), args.opts)

    return rewrite
