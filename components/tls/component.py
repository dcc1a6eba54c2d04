"""How the authority of a RayCluster is provisioned."""

from dataclasses import dataclass

import pulumi

from ..kubernetes import KubernetesObject, in_namespace
from .authority import Authority
from .manifests import authority_certificate, authority_secret
from .settings import TlsSettings


@dataclass(frozen=True)
class ClusterAuthorityArgs:
    """What a ClusterAuthority is made from."""

    settings: TlsSettings

    cluster: str
    """Name of the RayCluster."""

    namespace: pulumi.Input[str]


class ClusterAuthority(pulumi.ComponentResource):
    """The Secret with which each pod of a RayCluster makes its certificate; the RayCluster depends on this component.

    It is made by the stack, or by cert-manager where the settings name an issuer.
    """

    def __init__(self, name: str, args: ClusterAuthorityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:ClusterAuthority", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        if args.settings.issuer:
            body = authority_certificate(args.cluster, args.settings.issuer)
            KubernetesObject(f"{name}-certificate", in_namespace(body, args.namespace), own)
        else:
            authority = Authority(f"{name}-authority", args.cluster, own)
            body = authority_secret(args.cluster, authority.certificate, authority.key)
            KubernetesObject(f"{name}-secret", in_namespace(body, args.namespace), own)
        self.register_outputs({})
