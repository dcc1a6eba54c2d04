"""How the authority of a RayCluster is provisioned."""

from dataclasses import dataclass

import pulumi

from ..bodies import in_namespace
from ..kept import Keeper
from ..kubernetes import KubernetesObject
from .authority import Authority, AuthorityArgs
from .manifests import authority_certificate, authority_secret, secret_name
from .settings import TlsSettings


@dataclass(frozen=True)
class ClusterAuthorityArgs:
    """Arguments of ClusterAuthority."""

    settings: TlsSettings

    cluster: str
    """Name of the RayCluster."""

    namespace: pulumi.Input[str]

    context: str | None = None
    """Context of the kubeconfig, the provider's; None for the current one."""


class ClusterAuthority(pulumi.ComponentResource):
    """The Secret with which each pod of a RayCluster creates its certificate. The RayCluster depends on this component.

    The stack creates it, or cert-manager if the settings name an issuer.
    """

    def __init__(self, name: str, args: ClusterAuthorityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:ClusterAuthority", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        if args.settings.issuer:
            body = authority_certificate(args.cluster, args.settings.issuer)
            KubernetesObject(f"{name}-certificate", in_namespace(body, args.namespace), own)
        else:
            keeper = Keeper(args.namespace, secret_name(args.cluster), args.context)
            authority = Authority(f"{name}-authority", AuthorityArgs(args.cluster, keeper), own)
            body = authority_secret(args.cluster, authority.certificate, authority.key)
            KubernetesObject(f"{name}-secret", in_namespace(body, args.namespace), own)
        self.register_outputs({})
