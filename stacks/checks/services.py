"""Rules for RayServices that depend on their rendered RayCluster and on the rest of the stack. Pure functions."""

from collections.abc import Iterator
from decimal import Decimal

from components.ray_cluster.manifests import head_ports
from components.ray_service.api_key import problems_of_key
from components.ray_service.manifests import SERVE_PORT
from components.ray_service.settings import RayServiceSettings
from core.body import Body
from core.nodes import GPU_RESOURCE
from core.problems import Problem
from core.quantities import amount, shown
from stacks.objects.queues import scheduling_of
from stacks.settings import StackSettings, TenantSettings


def problems_of_serving(service: RayServiceSettings, body: Body) -> Iterator[Problem]:
    """Applications that nobody could reach, or that no worker has room for; paths are in the service's settings."""
    config, spec = service.config, body["spec"]["rayClusterConfig"]
    if service.api_key:
        yield from problems_of_key(config, spec)
    port, http = head_ports(spec)[SERVE_PORT], config.http_options
    if http and http.port != port:
        message = (
            f"Serve would listen on {http.port}, and the Service and KubeRay's health check use the head's port "
            f"{SERVE_PORT}, {port}: remove it, or set the containerPort of that port in head.podTemplate"
        )
        yield Problem(("serveConfigV2", "http_options", "port"), http.port, message, "service-endpoints")
    most = max(map(_gpus, [spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())]))
    for at, application in enumerate(config.applications):
        for number, deployment in enumerate(application.deployments):
            options = deployment.ray_actor_options
            if options and options.num_gpus and options.num_gpus > most:
                path = ("serveConfigV2", "applications", at, "deployments", number, "ray_actor_options", "num_gpus")
                message = (
                    f"a replica needs {options.num_gpus:g} GPUs, and no worker of the service has more than "
                    f"{shown(GPU_RESOURCE, most)}: use larger workers, or bundles (placement_group_bundles)"
                )
                yield Problem(path, options.num_gpus, message, "service-gpus")


def _gpus(group: Body) -> Decimal:
    """GPUs of Ray's container in the pods of a group."""
    resources = group["template"]["spec"]["containers"][0].get("resources") or {}
    return amount(str((resources.get("limits") or {}).get(GPU_RESOURCE, 0)))


def service_in_kueue(stack: StackSettings, tenant: TenantSettings, service: RayServiceSettings) -> Iterator[Problem]:
    """A RayService in a queue of Kueue, which has no integration for it and suspends its RayCluster instead; KubeRay
    resumes that at once (rayservice_controller.go: shouldUpdateCluster), so it would not wait for room."""
    if stack.scheduler and stack.scheduler.kueue and scheduling_of(stack, tenant, service.own_cluster).queue:
        message = (
            "Kueue 0.15 does not know RayServices, and KubeRay starts a RayCluster of a service that Kueue suspends: "
            "put the service into a tenant without a queue, or use Volcano"
        )
        yield Problem((), None, message, "not-with-kueue")
