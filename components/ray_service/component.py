"""How a RayService is provisioned."""

from dataclasses import dataclass, replace

import pulumi

from components.bodies import by_force, digest, in_namespace
from components.dynamic.reached import Reached, ReachedArgs
from components.kubernetes import create
from components.objects import the_object
from components.owned_cluster.component import OwnedClusterArgs, OwnerArgs, prerequisites
from components.ray_cluster.request import Request, Scaled, service_request
from components.ray_service.manifests import RAY_SERVICE, connection
from components.ray_service.progress import until_serving
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from core.types import seconds
from kuberay.ports import SERVE_PORT, head_ports
from kuberay.schedulers import KUEUE_QUEUE_LABEL


@dataclass(frozen=True)
class RayServiceArgs(OwnerArgs[RayServiceSettings]):
    queued: bool = False
    """Whether Kueue may suspend it while it waits in a queue."""

    live: Scaled | None = None
    """The RayCluster in the spec of the live RayService, if it is in a queue of Kueue; None if it does not exist."""


class RayService(pulumi.ComponentResource):
    """A RayService, with the RayClusters that KubeRay creates for it.

    Edits are applied in place, except another queue of Kueue, which replaces the RayService: KubeRay submits another
    Serve config to the running RayCluster, and replaces that if its own settings change. The autoscaler changes the
    RayClusters and not the RayService, so an update does not touch the number of workers. A node drain evicts none of
    the heads, unless the settings allow it.

    Outputs:
        connection: namespace, name, the Services of head and Serve, and the endpoint of the applications in the
            cluster. An incremental upgrade has a Gateway instead.
        status: with `wait_for`, the state once `up` has waited for it, else None. A resource of its own
            fails if this version of the service fails, or does not serve in time (`Reached`).
    """

    connection: pulumi.Output[dict[str, str]]
    status: pulumi.Output[str | None]

    def __init__(self, name: str, args: RayServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RayService", name, None, opts)
        settings = args.settings
        inside = [replace(each, body=in_namespace(each.body, args.namespace)) for each in args.objects]
        itself = the_object(inside, RAY_SERVICE)
        spec = itself.body["spec"]["rayClusterConfig"]
        made = create(name, [each for each in inside if each is not itself], pulumi.ResourceOptions(parent=self))
        owned = OwnedClusterArgs(settings.own_cluster, spec, args.namespace, args.cluster, SERVICE_LABEL)
        waits = prerequisites(name, owned, self, opts, [made[each] for each in itself.after])
        request = service_request(itself.body, args.live) if args.queued else Request(by_force(itself.body))
        options = pulumi.ResourceOptions(
            parent=self,
            depends_on=waits.depends_on,
            ignore_changes=list(request.ignored),
            # Kueue refuses another queue.
            replace_on_changes=[f'metadata.labels["{KUEUE_QUEUE_LABEL}"]'],
            delete_before_replace=True,
        )
        sent = replace(itself, body=request.body)
        service = create(name, [sent], options, made=made)[RAY_SERVICE]
        port = head_ports(spec)[SERVE_PORT]
        self.connection = service.metadata.apply(lambda found: connection(settings, found["namespace"], port))
        self.status = pulumi.Output.from_input(None)
        if settings.wait_for != "nothing":
            version = f"{digest(itself.body)} {settings.wait_for}"
            operator, limit = args.operator_namespace, seconds(settings.wait_timeout)
            waited = ReachedArgs(
                "RayService",
                args.namespace,
                settings.name,
                service,
                lambda namespace, show: until_serving(args.cluster, namespace, settings.name, operator, limit, show),
                version,
                args.cluster.connection,
            )
            below_self = pulumi.ResourceOptions(parent=self)
            self.status = Reached(f"{name}-{settings.wait_for}", waited, below_self).status
        self.register_outputs({"connection": self.connection, "status": self.status})
