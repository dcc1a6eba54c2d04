"""The certificate authority for the pods of one RayCluster: created and renewed by the stack, or by cert-manager."""

from dataclasses import dataclass

import pulumi

from components.bodies import in_namespace
from components.cluster import AMBIENT, Connection
from components.dynamic.generated import Authority, AuthorityArgs, Keeper
from components.kubernetes import KubernetesObject
from components.state import whole
from components.tls.manifests import TlsSettings, authority_secret, secret_name


@dataclass(frozen=True)
class ClusterAuthorityArgs:
    cluster: str
    """Name of the RayCluster."""

    namespace: pulumi.Input[str]

    connection: Connection = AMBIENT


class ClusterAuthority(pulumi.ComponentResource):
    """The Secret with which each pod of a RayCluster creates its certificate. The RayCluster depends on this
    component."""

    def __init__(self, name: str, args: ClusterAuthorityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("ray-platform:index:ClusterAuthority", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        keeper = Keeper(args.namespace, secret_name(args.cluster), args.connection)
        authority = Authority(f"{name}-authority", AuthorityArgs(args.cluster, keeper), own)
        body = authority_secret(args.cluster, authority.certificate, authority.key)
        KubernetesObject(f"{name}-secret", in_namespace(body, args.namespace), own)


def generated_authority(
    name: str, tls: TlsSettings | None, args: ClusterAuthorityArgs, parent: pulumi.Resource
) -> list[pulumi.Output[pulumi.Resource]]:
    """Creates the authority of a RayCluster with TLS, unless cert-manager does. Returns what its pods depend on."""
    if tls is None or tls.issuer:
        return []
    return [whole(ClusterAuthority(name, args, pulumi.ResourceOptions(parent=parent)))]
