"""How NetworkPolicies and Ingresses are provisioned."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi

from components.bodies import in_namespace
from components.kubernetes import KubernetesObject
from components.network.manifests import Body, ingress
from components.network.settings import IngressSettings


@dataclass(frozen=True)
class NetworkPoliciesArgs:
    """Arguments of NetworkPolicies."""

    policies: Sequence[Body]

    namespace: pulumi.Input[str]


class NetworkPolicies(pulumi.ComponentResource):
    """The NetworkPolicies of a namespace. Its workloads depend on this component, so they never run without
    policies."""

    def __init__(self, name: str, args: NetworkPoliciesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:NetworkPolicies", name, None, opts)
        for body in args.policies:
            KubernetesObject(
                f"{name}-{body['metadata']['name']}",
                in_namespace(body, args.namespace),
                pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({})


@dataclass(frozen=True)
class DashboardIngressArgs:
    """Arguments of DashboardIngress."""

    settings: IngressSettings

    cluster: str
    """Name of the RayCluster."""

    namespace: pulumi.Input[str]

    head_service: str
    """Name of the head's Service."""

    port: int
    """The dashboard's port."""


class DashboardIngress(pulumi.ComponentResource):
    """The Ingress of a RayCluster's dashboard and jobs API, with its own host name and TLS."""

    def __init__(self, name: str, args: DashboardIngressArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:DashboardIngress", name, None, opts)
        body = ingress(args.cluster, args.head_service, args.settings, args.port)
        KubernetesObject(f"{name}-ingress", in_namespace(body, args.namespace), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})
