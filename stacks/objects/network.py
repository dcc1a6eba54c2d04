"""The NetworkPolicies of a stack: which pods reach which, from the settings of all its parts."""

from collections.abc import Iterator
from dataclasses import replace

from components.access.personas import RayDeployerSettings
from components.idle_termination.manifests import LABELS as IDLE_TERMINATION
from components.job_template.manifests import SCHEDULE_LABEL
from components.kueue.manifests import MANAGER_LABELS, METRICS_PORT
from components.kueue.manifests import WEBHOOK_PORT as KUEUE_WEBHOOK_PORT
from components.network import manifests
from components.network.manifests import Openings, RayPods
from components.ray_cluster.pods import RedisPlace
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.settings import JOB_LABEL
from components.ray_service.settings import SERVICE_LABEL
from components.redis.connection import EXPORTER_PORT, LABELS, REDIS_PORT, SELECTOR, SENTINEL_PORT
from components.run_history.manifests import LABELS as RUN_HISTORY
from components.volcano.manifests import METRICS_PORTS, WEBHOOK_LABELS, WEBHOOK_PORT
from core.body import Body
from kuberay.ports import head_ports, metrics_ports, serve_ports
from stacks.objects.external_ray import to_external
from stacks.objects.logs import logs_of
from stacks.objects.ray_clusters import redis_place, rendered
from stacks.objects.redis import RedisPart
from stacks.settings import StackSettings, TenantSettings


def operator_policies(stack: StackSettings) -> list[Body]:
    """The policies of the operator's namespace; none if the operator is an existing one."""
    if not stack.network.policies or stack.operator.install == "existing":
        return []
    specs = [rendered(stack, tenant, cluster)["spec"] for tenant in stack.tenants for cluster in tenant.all_clusters]
    asked = {head_ports(spec)[name] for spec in specs for name in ("dashboard", "serve")}
    watched = stack.operator.watch_namespaces
    return manifests.operator_policies(stack.network_in_force, stack.operator.namespace, watched, asked)


def scheduler_policies(stack: StackSettings) -> list[Body]:
    """The policies of the namespace of Volcano or Kueue; none if the scheduler is an existing one."""
    if stack.scheduler is None or not stack.network.policies or stack.scheduler.configured.install == "existing":
        return []
    installed = stack.scheduler.configured
    name, webhook, port, metrics = (
        ("volcano", WEBHOOK_LABELS, WEBHOOK_PORT, METRICS_PORTS)
        if stack.scheduler.volcano
        else ("kueue", MANAGER_LABELS, KUEUE_WEBHOOK_PORT, (METRICS_PORT,))
    )
    return manifests.scheduler_policies(
        stack.network_in_force, name, installed.namespace, webhook, port, metrics if installed.metrics else ()
    )


def redis_policies(stack: StackSettings, part: RedisPart) -> list[Body]:
    """The policies of a Redis, in its namespace: its own, and the default deny if no other part of the stack creates
    that."""
    if not stack.network.policies:
        return []
    names = [tenant.namespace_name for tenant in part.tenants]
    metrics = stack.network_in_force.monitoring if part.settings.exporter else ()
    return [
        *([manifests.default_deny()] if part.own_namespace else []),
        manifests.redis_policy(LABELS, (REDIS_PORT, SENTINEL_PORT), names, stack.network.dns),
        *([manifests.redis_metrics_policy(SELECTOR, EXPORTER_PORT, metrics)] if metrics else []),
    ]


def policies_of_clusters(stack: StackSettings, tenant: TenantSettings) -> Iterator[tuple[str | None, Body]]:
    """The policies of a tenant's namespace: default deny and DNS, then what its RayClusters and settings allow. Each
    with the name of its RayCluster, RayJob or RayService; None if it is for all of them."""
    settings = tenant.network
    if not (stack.network.policies and settings.policies):
        return
    place = redis_place(stack, tenant)
    deployer = tenant.ray_deployer
    opened = deployer.network if deployer else None
    named = RayPods(
        workers_ask_api_server=deployer is not None,
        ingress=settings.ingress,
        redis=place.connection if place else None,
        gateway=bool(place and place.gateway),
        deployed=opened.ports if opened else (),
    )
    clusters = [
        *(_ray_pods(cluster, rendered(stack, tenant, cluster)["spec"], place, deployer) for cluster in tenant.clusters),
        *(replace(named, name=name) for name in tenant.cluster_names),
    ]
    known = tuple(each.name for each in clusters)
    owned = [(JOB_LABEL, job.own_cluster) for _, job in tenant.placed_jobs if job.own_cluster]
    owned += [(SERVICE_LABEL, service.own_cluster) for service in tenant.services]
    for label, own in owned:
        pods = _ray_pods(own, rendered(stack, tenant, own)["spec"], place, deployer)
        clusters.append(replace(pods, label=label))
    elsewhere = ((JOB_LABEL, tenant.job_names), (SERVICE_LABEL, tenant.service_names))
    clusters += [replace(named, name=name, label=label, ingress=False) for label, names in elsewhere for name in names]
    if settings.other_clusters:
        labels = (
            (JOB_LABEL, tenant.jobs or tenant.job_templates or tenant.job_names),
            (SERVICE_LABEL, tenant.services or tenant.service_names),
        )
        own_policies = tuple(label for label, some in labels if some)
        clusters.append(replace(named, other_than=known, unlabelled=own_policies, ingress=False))
    history = tenant.run_history
    if history and history.read_heads:
        clusters = [replace(each, programs=(*each.programs, RUN_HISTORY)) for each in clusters]
    openings = Openings(settings.dashboard_from, settings.client_from, settings.serve_from)
    yield None, manifests.default_deny()
    if asked := [each.ports["dashboard"] for each in clusters if IDLE_TERMINATION in each.programs]:
        yield None, manifests.idle_termination(IDLE_TERMINATION, asked, stack.network.api_server)
    if history:
        read = [each.ports["dashboard"] for each in clusters if RUN_HISTORY in each.programs]
        yield None, manifests.run_history(RUN_HISTORY, read, stack.network.api_server)
    yield None, manifests.dns(stack.network.dns)
    if clusters:
        yield None, manifests.submitters(each.ports["dashboard"] for each in clusters)
    if any(template.cron for template in tenant.job_templates):
        yield None, manifests.schedules(SCHEDULE_LABEL, stack.network)
    if settings.egress:
        yield None, manifests.egress(settings.egress)
    if opened:
        running = [each for each in clusters if each.deployed]
        yield None, manifests.deployed(opened, running, stack.network.api_server)
    if (logs := logs_of(stack, tenant)) and logs.egress:
        yield None, manifests.log_collectors(logs.egress)
    for external in tenant.external_clusters:
        yield external.name, to_external(external)
        if history and history.read_heads:
            yield external.name, to_external(external, RUN_HISTORY)
    for pods in clusters:
        for policy in manifests.ray_policies(pods, openings, stack.network_in_force, stack.operator.namespace):
            yield pods.name or None, policy


def _ray_pods(
    cluster: RayClusterSettings, spec: Body, place: RedisPlace | None, deployer: RayDeployerSettings | None
) -> RayPods:
    opened = deployer.network.ports if deployer and deployer.network else ()
    pods = [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())]
    runs_as_it = any(deployer and _account(group) == deployer.service_account for group in pods)
    place = place if cluster.fault_tolerance else None
    # With tokens of Kubernetes, every Ray process sends the tokens that it receives to the API server for review.
    reviews_tokens = bool((spec.get("authOptions") or {}).get("enableK8sTokenAuth"))
    scales = bool(spec.get("enableInTreeAutoscaling"))
    return RayPods(
        cluster.name,
        ports=head_ports(spec),
        serve=serve_ports(spec),
        metrics=metrics_ports(spec),
        head_asks_api_server=scales or reviews_tokens or bool(_account(spec["headGroupSpec"])),
        workers_ask_api_server=reviews_tokens or any(map(_account, spec.get("workerGroupSpecs") or ())),
        ingress=cluster.ingress is not None,
        redis=place.connection if place else None,
        gateway=bool(place and place.gateway),
        deployed=opened if runs_as_it else (),
        programs=(IDLE_TERMINATION,) if cluster.idle_termination_options else (),
    )


def _account(group: Body) -> str | None:
    """The ServiceAccount whose token the group's pods have, if they name one."""
    pod = group["template"]["spec"]
    return pod.get("serviceAccountName") if pod.get("automountServiceAccountToken") is not False else None
