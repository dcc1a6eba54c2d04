"""Who may use the RayClusters of a tenant, which ServiceAccounts their pods run as, and the rules that the API server
enforces: in which namespaces, and with which exceptions. Pure functions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from components.access.admission import NETWORKED
from components.access.personas import NamedCluster, RayDeployerSettings, Subject
from components.access.restricted import Deployer, Restricted
from components.admission_policies.settings import admission_policies
from components.idle_termination.manifests import LABELS as IDLE_TERMINATION
from components.redis.connection import NAME as REDIS
from components.run_history.manifests import LABELS as RUN_HISTORY
from components.workloads import Viewers
from core.body import Body
from core.nodes import gpu_resources
from core.problems import Path, Problem
from kuberay.formats import derived
from stacks.objects.ray_clusters import rendered
from stacks.objects.redis import shared_redis
from stacks.settings import StackSettings, TenantSettings

_EVERY_POD = "default"
"""ServiceAccount of a pod that sets none."""


def named_clusters(stack: StackSettings, tenant: TenantSettings) -> Iterator[NamedCluster]:
    """The tenant's RayClusters, and those of a separate stack, which are assumed to use a token each."""
    for cluster in tenant.clusters:
        yield named_cluster(cluster.name, rendered(stack, tenant, cluster)["spec"])
    for name in tenant.cluster_names:
        yield NamedCluster(name, derived(name))


def unknown_cluster(tenant: TenantSettings, path: Path, name: str) -> Iterator[Problem]:
    """A name at `path` that no RayCluster of the tenant has."""
    names = [*(cluster.name for cluster in tenant.clusters), *tenant.cluster_names]
    yield from unknown(tenant, path, name, "cluster", names, "clusters or clusterNames")


def unknown_template(tenant: TenantSettings, path: Path, name: str) -> Iterator[Problem]:
    """A name at `path` that no job template of the tenant has."""
    yield from unknown(tenant, path, name, "job template", [each.name for each in tenant.job_templates], "jobTemplates")


def unknown(
    tenant: TenantSettings, path: Path, name: str, what: str, names: Sequence[str], setting: str
) -> Iterator[Problem]:
    """A name at `path` that is none of the tenant's `names`. `what` they name; `setting`: where to add one."""
    if name not in names:
        known = f"use one of {', '.join(names)}, or " if names else ""
        message = f"tenant {tenant.name!r} has no {what} {name!r}: {known}add it to {setting}"
        yield Problem(path, name, message, f"unknown-{what.replace(' ', '-')}")


def admins_of(cluster_admins: Iterable[Subject], tenant: TenantSettings) -> tuple[Subject, ...]:
    """Who manages the tenant's RayClusters: the cluster admins and the tenant's own admins."""
    return tuple(dict.fromkeys([*cluster_admins, *tenant.admins]))


def viewers_of(stack: StackSettings, tenant: TenantSettings) -> Viewers:
    """Who sees what the stack's own programs have of a tenant: its metrics, its logs."""
    subjects = (*admins_of(stack.access.cluster_admins, tenant), *(user.subject for user in tenant.users))
    return Viewers(tenant.namespace_name, tuple(dict.fromkeys(subjects)))


def own_accounts(tenant: TenantSettings) -> list[str]:
    """ServiceAccounts that the stack creates for RayClusters, beside that of the RayDeployer."""
    if tenant.ray_deployer:
        return []
    accounts = [tenant.service_account(cluster) for cluster in tenant.clusters if not cluster.service_account]
    return list(dict.fromkeys(account for account in accounts if account))


def named_cluster(name: str, spec: Body) -> NamedCluster:
    """A RayCluster by its spec, because overrides and pod templates can differ from the settings."""
    options = spec.get("authOptions") or {}
    if options.get("mode") != "token":
        return NamedCluster(name)
    if not options.get("enableK8sTokenAuth"):
        return NamedCluster(name, options.get("secretName") or derived(name))
    pods = [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or [])]
    accounts = [group["template"]["spec"].get("serviceAccountName") or _EVERY_POD for group in pods]
    return NamedCluster(name, accounts=tuple(dict.fromkeys(accounts)))


def tenants_namespaces(stack: StackSettings) -> tuple[str, ...] | None:
    """The tenants' namespaces; None if the stack creates all of them, because then a label selects them."""
    if all(tenant.create_namespace for tenant in stack.tenants):
        return None
    return tuple(tenant.namespace_name for tenant in stack.tenants)


def ingress_hosts(stack: StackSettings) -> dict[str, tuple[str, ...]]:
    """Host names of Ingresses, by the namespaces of the tenants that may have any."""
    return {
        tenant.namespace_name: tuple(
            dict.fromkeys(
                [*(each.ingress.host for each in tenant.clusters if each.ingress), *tenant.network.ingress_hosts]
            )
        )
        for tenant in stack.tenants
        if tenant.network.ingress
    }


def problems_of_hosts(stack: StackSettings) -> Iterator[Problem]:
    """Host names that two RayClusters have, or that a tenant could take from the RayCluster of another: an ingress
    controller would send the requests of one to the other."""
    owners: dict[str, tuple[str, str]] = {}
    for index, tenant in enumerate(stack.tenants):
        for position, cluster in enumerate(tenant.clusters):
            if cluster.ingress is None:
                continue
            host, name = cluster.ingress.host, f"{tenant.namespace_name}/{cluster.name}"
            if host in owners:
                message = f"RayCluster {owners[host][1]} has this host already: give each another"
                yield Problem(("tenants", index, "clusters", position, "ingress", "host"), host, message, "host-twice")
            owners.setdefault(host, (tenant.namespace_name, name))
    covered = defaultdict(list)
    for host in owners:
        for hosts in _covering(host):
            covered[hosts].append(host)
    given: dict[str, list[tuple[str, str]]] = defaultdict(list)
    below: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for index, tenant in enumerate(stack.tenants):
        for position, hosts in enumerate(tenant.network.ingress_hosts):
            above = (each for wider in _covering(hosts) for each in given[wider])
            for other, name in dict.fromkeys([*below[hosts], *above]):
                if name != tenant.namespace_name:
                    message = f"tenant {name} has {other}, and each could take requests for the other: give others"
                    yield Problem(("tenants", index, "network", "ingressHosts", position), hosts, message, "host-twice")
            given[hosts].append((hosts, tenant.namespace_name))
            for wider in _covering(hosts):
                below[wider].append((hosts, tenant.namespace_name))
            for host in covered.get(hosts, ()):
                namespace, name = owners[host]
                if namespace != tenant.namespace_name:
                    message = f"the tenant could take the requests for {host}, which is RayCluster {name}: give others"
                    yield Problem(("tenants", index, "network", "ingressHosts", position), hosts, message, "host-twice")


def _covering(hosts: str) -> Iterable[str]:
    """The hosts that have all names of these: the same, and `*.` with each domain above."""
    labels = hosts.split(".")
    return dict.fromkeys([hosts, *(f"*.{'.'.join(labels[at:])}" for at in range(1, len(labels)))])


def restricted(stack: StackSettings) -> Restricted:
    """What the API server admits in the tenants' namespaces."""
    tenants = stack.tenants
    upgrades = (each.upgrade_strategy for tenant in tenants for each in tenant.services)
    options = (each.cluster_upgrade_options for each in upgrades if each)
    return Restricted(
        tenants_namespaces(stack),
        stack.priorities.of_tenants,
        ingress_hosts(stack),
        {tenant.namespace_name: tenant.network.ingress_annotations for tenant in tenants},
        {tenant.namespace_name: tenant.pod_annotations for tenant in tenants},
        {tenant.namespace_name: _exposed(tenant) for tenant in tenants},
        tuple(dict.fromkeys(each.gateway_class_name for each in options if each)),
        stack.operator_in_force.batch_scheduler,
        {tenant.namespace_name: tenant.scheduler for tenant in tenants if tenant.scheduler},
        tuple(
            dict.fromkeys([*gpu_resources(stack.nodes), *(taint.key for pool in stack.nodes for taint in pool.taints)])
        ),
        redis.namespace if (redis := shared_redis(stack)) and stack.access.cluster_admins else None,
        tuple(each.name for tenant in tenants for each in tenant.job_templates),
        _sizes(tenants),
        any(each.local_code for tenant in tenants for each in tenant.job_templates),
        {tenant.namespace_name: _connected(tenant) for tenant in tenants if stack.network.policies and _closed(tenant)},
        {
            tenant.namespace_name: _deployer(stack, tenant.namespace_name, each)
            for tenant in tenants
            if (each := tenant.ray_deployer) and (each.network or each.persistent_volume_claims)
        },
    )


def _sizes(tenants: Sequence[TenantSettings]) -> dict[str, list[str]]:
    """The sizes of runs, by the job templates of that name of any tenant."""
    found: dict[str, list[str]] = defaultdict(list)
    for template in (each for tenant in tenants for each in tenant.job_templates):
        found[template.name] += (size for size in template.sizes if size not in found[template.name])
    return found


_PROGRAMS = (IDLE_TERMINATION, RUN_HISTORY, {"app.kubernetes.io/name": REDIS})
"""Labels of pods of the stack's own in a tenant's namespace, by which NetworkPolicies select them."""


def _deployer(stack: StackSettings, namespace: str, settings: RayDeployerSettings) -> Deployer:
    """What is admitted of the account. A pod with the labels of a peer in its namespace would have the connections
    that any tenant's `network` gives the peer."""
    networks = [tenant.network for tenant in stack.tenants]
    peers = (
        peer
        for each in networks
        for peer in (*each.dashboard_from, *each.client_from, *each.serve_from)
        if peer.namespace == namespace and peer.pod_labels
    )
    claims = settings.persistent_volume_claims
    return Deployer(
        settings.service_account,
        settings.network is not None,
        [*_PROGRAMS, *(peer.pod_labels for peer in peers)] if settings.network else (),
        claims.storage_classes if claims else (),
    )


def _closed(tenant: TenantSettings) -> bool:
    """Whether people or accounts may create RayClusters whose pods no NetworkPolicy lets reach each other."""
    network = tenant.network
    return network.policies and not network.other_clusters and bool(tenant.admins or tenant.ray_deployer)


def _connected(tenant: TenantSettings) -> tuple[str, ...]:
    """The objects of KubeRay that have NetworkPolicies (stacks/objects/network.py: policies_of_clusters)."""
    clusters, jobs, services = (
        (*(each.name for each in own), *elsewhere)
        for own, elsewhere in (
            (tenant.clusters, tenant.cluster_names),
            (tenant.jobs, tenant.job_names),
            (tenant.services, tenant.service_names),
        )
    )
    named = zip(NETWORKED, (clusters, jobs, services), strict=True)
    return tuple(f"{plural}/{name}" for plural, names in named for name in names)


def _exposed(tenant: TenantSettings) -> tuple[str, ...]:
    """Types of Services to the outside that the tenant may have: those that its quota counts any of."""
    if tenant.quota is None:
        return ()
    most = {"LoadBalancer": tenant.quota.load_balancers, "NodePort": tenant.quota.node_ports}
    return tuple(kind for kind, number in most.items() if number)


def installed_namespaces(stack: StackSettings) -> tuple[str, ...]:
    """The namespaces of the programs that the stack installs for all tenants."""
    found = [stack.operator.namespace]
    if stack.scheduler:
        found.append(stack.scheduler.configured.namespace)
    return tuple(found)


def enforced(stack: StackSettings) -> Sequence[Body]:
    """The policies and their bindings as of today: exceptions expire."""
    if stack.admission_policies is None:
        return ()
    return admission_policies(
        stack.admission_policies, tenants_namespaces(stack), installed_namespaces(stack), date.today()
    )


def problems_of_admission(stack: StackSettings) -> Iterator[Problem]:
    """Exceptions for namespaces in which no rule is enforced."""
    settings = stack.admission_policies
    if settings is None or settings.namespaces == "all":
        return
    known = [tenant.namespace_name for tenant in stack.tenants]
    for index, each in enumerate(settings.exceptions):
        if each.namespace not in known:
            message = f"is not a tenant's namespace, so no rule applies there: use one of {', '.join(known) or 'none'}"
            path = ("admissionPolicies", "exceptions", index, "namespace")
            yield Problem(path, each.namespace, message, "admission-namespaces")
