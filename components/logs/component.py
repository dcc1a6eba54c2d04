"""How the collectors of a tenant's logs are provisioned."""

from dataclasses import dataclass

import pulumi

from components.bodies import Body, in_namespace
from components.kubernetes import KubernetesObject


@dataclass(frozen=True)
class LogCollectorsArgs:
    """Arguments of LogCollectors."""

    config_map: Body
    """The configuration, as `manifests.config_map` renders it."""

    namespace: pulumi.Input[str]


class LogCollectors(pulumi.ComponentResource):
    """The configuration of the collectors in a tenant's pods, which do not start without it."""

    def __init__(self, name: str, args: LogCollectorsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:LogCollectors", name, None, opts)
        body = in_namespace(args.config_map, args.namespace)
        KubernetesObject(f"{name}-config", body, pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
