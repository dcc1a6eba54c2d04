"""How a RayService is provisioned."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi

from components.bodies import by_force, in_namespace
from components.cluster import Cluster
from components.kubernetes import create
from components.kubernetes_cluster import KubernetesCluster
from components.objects import Object
from components.owned_cluster.component import OwnedClusterArgs, prerequisites
from components.ray_cluster.manifests import head_ports
from components.ray_service.manifests import RAY_SERVICE, SERVE_PORT, connection
from components.ray_service.progress import ServiceFailedError, until_serving
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from core.types import seconds


@dataclass(frozen=True)
class RayServiceArgs:
    """Arguments of RayService."""

    settings: RayServiceSettings

    objects: Sequence[Object]
    """All objects of the RayService (manifests.ray_service_objects)."""

    namespace: pulumi.Input[str]

    operator_namespace: str = "ray-system"
    """Where to look for the operator when the service does not become ready."""

    cluster: Cluster = field(default_factory=KubernetesCluster)

    last_status: str | None = None
    """Its `status` after the last update, which a preview shows again; None if there was none."""


class RayService(pulumi.ComponentResource):
    """A RayService, with the RayClusters that KubeRay creates for it.

    Edits are applied in place: KubeRay submits another Serve config to the running RayCluster, and replaces that if its
    own settings change. The autoscaler changes the RayClusters and not the RayService, so an update does not touch the
    number of workers. A node drain evicts none of the heads, unless the settings allow it.

    Outputs:
        connection: namespace, name, the Services of head and Serve, and the endpoint of the applications in the
            cluster. An incremental upgrade has a Gateway instead.
        status: with `wait_for`, the state once `up` has waited for it, else None. An update fails if this version of
            the service fails, or does not serve in time (pulumi.RunError).
    """

    connection: pulumi.Output[dict[str, str]]
    status: pulumi.Output[str | None]

    def __init__(self, name: str, args: RayServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RayService", name, None, opts)
        settings = args.settings
        inside = [replace(each, body=in_namespace(each.body, args.namespace)) for each in args.objects]
        itself = next(each for each in inside if each.name == RAY_SERVICE)
        spec = itself.body["spec"]["rayClusterConfig"]
        made = create(name, [each for each in inside if each is not itself], pulumi.ResourceOptions(parent=self))
        owned = OwnedClusterArgs(settings.own_cluster, spec, args.namespace, args.cluster, SERVICE_LABEL)
        waits = prerequisites(name, owned, self, opts, [made[each] for each in itself.after])
        options = pulumi.ResourceOptions(parent=self, depends_on=waits.depends_on)
        sent = replace(itself, body=by_force(itself.body))
        service = create(name, [sent], options, made=made)[RAY_SERVICE]
        port = head_ports(spec)[SERVE_PORT]
        self.connection = service.metadata.apply(lambda found: connection(settings, found["namespace"], port))
        self.status = service.metadata.apply(lambda metadata: self._reached(args, metadata))
        self.register_outputs({"connection": self.connection, "status": self.status})

    async def _reached(self, args: RayServiceArgs, metadata: dict[str, Any] | None) -> str | None:
        settings = args.settings
        if settings.wait_for == "nothing":
            return None
        if pulumi.runtime.is_dry_run() or metadata is None:
            return args.last_status
        try:
            return await until_serving(
                args.cluster,
                metadata["namespace"],
                settings.name,
                args.operator_namespace,
                seconds(settings.wait_timeout),
                lambda state: pulumi.log.info(state, resource=self, ephemeral=True),
            )
        except ServiceFailedError as error:
            raise pulumi.RunError(str(error)) from error
