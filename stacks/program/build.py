"""All resources of a stack."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_kubernetes

from components.cluster import Cluster, Connection
from components.future_cluster import FutureCluster
from components.kubernetes_cluster import KubernetesCluster
from components.pulumi_internals import NotKnownError, resolved, without_stack_traces
from components.state import last_outputs, whole
from core.environment import environment_of
from core.provider import provider_version
from core.stack_file import PROJECT
from stacks.objects.cml import without_kubernetes
from stacks.objects.ownership import Ownership, ownership_of
from stacks.objects.platform_outputs import exported
from stacks.program.facts import Facts, read_facts
from stacks.program.foreign import refuse_foreign
from stacks.program.identity import OUTPUT as OUTPUT_OF_CLUSTER
from stacks.program.identity import connection_of
from stacks.program.platform import OtherPlatform, Platform, PlatformArgs, other_platform
from stacks.program.tenant import Tenant, TenantArgs, TenantClusters
from stacks.settings import StackSettings, TenantSettings

if TYPE_CHECKING:
    from components.cml.component import CmlRayCluster


@without_stack_traces()
def build(
    settings: StackSettings,
    opts: pulumi.ResourceOptions | None = None,
    kubeconfig: pulumi.Input[str] | None = None,
) -> dict[str, Any]:
    """Creates the stack's resources. Returns its outputs by name.

    `opts`: of all top-level resources. `kubeconfig`: content of the cluster's; default: the ambient one. If another
    resource of the program makes it, `build` waits for that resource before it reads the cluster; a preview in which it
    is not known yet reads nothing.

    `clusters`: by `<namespace>/<name>`, each RayCluster's head service, addresses, worker groups, GPUs of the largest
    worker, and state. `operator`: version and namespace. If this stack has the platform, `tenants`, `priorityClasses`
    and, if it has one, `scheduler`: separate stacks of tenants are validated against these
    (`platform_outputs.exported`). `split`, if the environment is split: the number
    of tenants' stacks. `kubernetes`: the UID of the cluster, which later updates compare (`identity.uid_of`).
    `cmlClusters`: by name the same of clusters on Cloudera ML, `cmlTokens` their tokens, and `cmlServeKeys` the keys
    for what they serve; both are secrets. `submittedJobs`: by name, jobs that `up` itself submits.

    Raises StackFileError, and pulumi.RunError if the stack's state contains resources that belong to another stack now,
    the cluster is not the stack's, or the kubeconfig is empty.
    """
    stack = pulumi.get_stack()
    owns = ownership_of(settings, stack)
    last = last_outputs()
    refuse_foreign(owns, stack, last)
    outside = _outside(settings, opts) if owns.platform else {}
    if without_kubernetes(settings):
        return outside
    cluster = _session(connection_of(settings), kubeconfig)
    # Before the cluster is read: an account of a tenant cannot read namespaces that the platform does not give to it.
    platform = other_platform(settings) if settings.platform else None
    facts = read_facts(cluster, settings, owns, last)
    provider = pulumi_kubernetes.Provider(
        "cluster",
        context=cluster.connection.context,
        kubeconfig=cluster.connection.kubeconfig,
        # A stack is for one cluster: another path, port or credential of its kubeconfig must not replace all resources.
        cluster_identifier=f"{PROJECT}/{environment_of(stack)}",
        opts=pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version=provider_version()), opts),
    )
    # Options of all top-level resources; their children inherit them.
    everywhere = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(providers=[provider]))
    outputs = (
        _tenants_alone(settings, platform, everywhere, facts, cluster)
        if platform
        else {**_with_platform(settings, owns, everywhere, facts, cluster), **outside}
    )
    return {**outputs, **({OUTPUT_OF_CLUSTER: {"cluster": facts.uid}} if facts.uid else {})}


def _session(ambient: Connection, kubeconfig: pulumi.Input[str] | None) -> Cluster:
    """The program's own session, for what it reads before it creates a resource."""
    if kubeconfig is None:
        return KubernetesCluster(ambient)
    connection = replace(ambient, kubeconfig=pulumi.Output.secret(kubeconfig))
    try:
        content = resolved(connection.kubeconfig)
    except NotKnownError:
        return FutureCluster(connection)
    if not content or not isinstance(content, str):
        raise pulumi.RunError("the given kubeconfig has no content: it has to be the text of a kubeconfig")
    return KubernetesCluster(connection, content)


def _outside(settings: StackSettings, opts: pulumi.ResourceOptions | None) -> dict[str, Any]:
    """The clusters on Cloudera ML, the jobs that `up` submits, and their outputs."""
    on_cml, made = _on_cml(settings, opts) if settings.cml else ({}, {})
    return {**on_cml, **(_jobs(settings, made, opts) if settings.jobs else {})}


def _on_cml(
    settings: StackSettings, opts: pulumi.ResourceOptions | None
) -> tuple[dict[str, Any], Mapping[str, "CmlRayCluster"]]:
    # Only stacks with such clusters need its client.
    from components.cml.component import CmlRayCluster, CmlRayClusterArgs

    assert settings.cml
    made = {
        cluster.name: CmlRayCluster(f"cml-{cluster.name}", CmlRayClusterArgs(settings.cml, cluster), opts)
        for cluster in settings.cml.clusters
    }
    keys = {name: cluster.serve_key for name, cluster in made.items() if cluster.serve_key is not None}
    outputs = {
        "cmlClusters": {name: cluster.summary for name, cluster in made.items()},
        "cmlTokens": {name: cluster.token for name, cluster in made.items()},
        **({"cmlServeKeys": keys} if keys else {}),
    }
    return outputs, made


def _jobs(
    settings: StackSettings, on_cml: Mapping[str, "CmlRayCluster"], opts: pulumi.ResourceOptions | None
) -> dict[str, Any]:
    """The jobs that `up` itself submits; those on Cloudera ML once their cluster is ready."""
    from components.remote_job.component import RemoteJob, RemoteJobArgs
    from components.remote_job.manifests import target, target_on_cml

    external = {cluster.name: target(cluster) for cluster in settings.external_clusters}
    found = {}
    for job in settings.jobs:
        if job.cml_cluster and settings.cml:
            cluster = on_cml[job.cml_cluster]
            url = cluster.connection["jobsUrl"]
            reached = target_on_cml(job.cml_cluster, url, cluster.token, settings.cml.ca_file)
            after = pulumi.ResourceOptions(depends_on=[whole(cluster)])
        else:
            reached, after = external[job.cluster], pulumi.ResourceOptions()
        args = RemoteJobArgs(job, reached)
        found[job.name] = RemoteJob(f"job-{job.name}", args, pulumi.ResourceOptions.merge(opts, after)).summary
    return {"submittedJobs": found}


def _with_platform(
    settings: StackSettings,
    owns: Ownership,
    everywhere: pulumi.ResourceOptions,
    facts: Facts,
    cluster: Cluster,
) -> dict[str, Any]:
    platform = Platform("platform", PlatformArgs(settings, owns, cluster, facts), everywhere)
    tenants = [
        Tenant(
            # As unique as the tenant's name, and the prefix of `<namespace>/<cluster>` everywhere else.
            tenant.namespace_name,
            TenantArgs(settings, tenant, platform.namespaces[tenant.name], facts, cluster),
            pulumi.ResourceOptions.merge(everywhere, _after(platform, tenant)),
        )
        for tenant in owns.tenants(settings)
    ]
    outputs: dict[str, Any] = {"split": owns.groups} if owns.groups else {}
    if platform.operator:
        outputs["operator"] = {"version": platform.operator.version, "namespace": platform.operator.namespace}
        outputs |= {**exported(settings), **_scheduler(settings, platform)}
    return outputs | _of_tenants(tenants, clusters=bool(tenants or not owns.groups))


def _of_tenants(tenants: Sequence[Tenant | TenantClusters], *, clusters: bool = True) -> dict[str, Any]:
    """The outputs of all tenants; `clusters` also if there are none."""
    found: dict[str, dict[str, Any]] = {
        "clusters": {name: each for tenant in tenants for name, each in tenant.clusters.items()},
        "jobs": {name: each for tenant in tenants for name, each in tenant.jobs.items()},
        "services": {name: each for tenant in tenants for name, each in tenant.services.items()},
    }
    return {output: value for output, value in found.items() if value or (output == "clusters" and clusters)}


def _scheduler(settings: StackSettings, platform: Platform) -> dict[str, Any]:
    if settings.scheduler is None or platform.scheduler is None:
        return {}
    return {"scheduler": {"name": settings.scheduler.backend, "version": platform.scheduler.version}}


def _after(platform: Platform, tenant: TenantSettings) -> pulumi.ResourceOptions:
    """What a tenant's RayClusters depend on, and what is therefore deleted after them."""
    redis = platform.redis.get(tenant.name)
    parts = [*platform.prerequisites, *([redis] if redis else [])]
    return pulumi.ResourceOptions(depends_on=[whole(part) for part in parts])


def _tenants_alone(
    settings: StackSettings,
    platform: OtherPlatform,
    everywhere: pulumi.ResourceOptions,
    facts: Facts,
    cluster: Cluster,
) -> dict[str, Any]:
    tenants = [
        TenantClusters(
            tenant.namespace_name,
            TenantArgs(
                settings,
                tenant,
                platform.namespaces[tenant.name],
                facts,
                cluster,
                platform.accounts.get(tenant.name),
            ),
            everywhere,
        )
        for tenant in settings.tenants
    ]
    return {"operator": platform.operator, **_of_tenants(tenants)}
