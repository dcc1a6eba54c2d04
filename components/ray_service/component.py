"""How a RayService is provisioned."""

from dataclasses import dataclass, field
from typing import Any

import pulumi

from components.bodies import by_force, in_namespace
from components.cluster import Cluster
from components.kubernetes import KubernetesObject
from components.kubernetes_cluster import KubernetesCluster
from components.owned_cluster.component import OwnedClusterArgs, before_owned
from components.ray_cluster.manifests import Body, head_ports
from components.ray_service.api_key import config_map
from components.ray_service.manifests import SERVE_PORT, connection, heads_disruption_budget
from components.ray_service.progress import ServiceFailedError, until_serving
from components.ray_service.settings import SERVICE_LABEL, RayServiceSettings
from core.types import seconds


@dataclass(frozen=True)
class RayServiceArgs:
    """Arguments of RayService."""

    settings: RayServiceSettings

    body: Body
    """The RayService as `manifests.ray_service` renders it."""

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
        settings, own = args.settings, args.settings.own_cluster
        spec = args.body["spec"]["rayClusterConfig"]
        if settings.api_key:
            program = in_namespace(config_map(settings.name), args.namespace)
            made = KubernetesObject(f"{name}-api-key", program, pulumi.ResourceOptions(parent=self))
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[made]))
        owned = OwnedClusterArgs(own, spec, args.namespace, args.cluster, SERVICE_LABEL)
        options = pulumi.ResourceOptions(parent=self, depends_on=before_owned(name, owned, self, opts).depends_on)
        service = KubernetesObject(f"{name}-ray-service", in_namespace(by_force(args.body), args.namespace), options)
        if not own.head.evictable:
            budget = in_namespace(heads_disruption_budget(settings), args.namespace)
            KubernetesObject(f"{name}-head-disruption-budget", budget, pulumi.ResourceOptions(parent=self))
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
