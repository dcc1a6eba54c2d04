"""How the account that Ray's pods run as is provisioned."""

from dataclasses import dataclass

import pulumi

from ..kubernetes import KubernetesObject, in_namespace
from .manifests import role, role_binding, service_account
from .settings import RayDeployerSettings


@dataclass(frozen=True)
class RayDeployerArgs:
    """What a RayDeployer is made from."""

    settings: RayDeployerSettings

    namespace: pulumi.Input[str]
    """Namespace of account, Role and RoleBinding."""


class RayDeployer(pulumi.ComponentResource):
    """A ServiceAccount that may make pods, Deployments, Services and RayClusters in its namespace.

    Outputs:
        service_account: its name, known once it is bound to its Role, so that a pod that runs as it may use it at once.
    """

    service_account: pulumi.Output[str]

    def __init__(self, name: str, args: RayDeployerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:RayDeployer", name, None, opts)
        bodies = {
            "service-account": service_account(args.settings),
            "role": role(args.settings),
            "role-binding": role_binding(args.settings, args.namespace),
        }
        made = [
            KubernetesObject(f"{name}-{part}", in_namespace(body, args.namespace), pulumi.ResourceOptions(parent=self))
            for part, body in bodies.items()
        ]
        self.service_account = pulumi.Output.all(*(each.id for each in made)).apply(
            lambda _: args.settings.service_account
        )
        self.register_outputs({"service_account": self.service_account})
