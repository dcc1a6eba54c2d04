"""The certificate authority for the pods of one RayCluster: created and renewed by the stack, or by cert-manager.

Its key is a secret of Pulumi. Pulumi's own provider for this, pulumi-tls, would be one more plugin to download for a
key and a certificate.
"""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from components.bodies import in_namespace
from components.cluster import AMBIENT, Connection
from components.dynamic import Keeper, Resource, kept
from components.kubernetes import KubernetesObject
from components.state import whole
from components.tls.manifests import TlsSettings, authority_secret, secret_name


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        # Imported here and below: the program itself does not need `cryptography`.
        from components.tls.issuing import ends_soon, new_authority

        existing = kept(props["keeper"])
        certificate, key = existing.get("tls.crt"), existing.get("tls.key")
        if certificate is None or key is None or ends_soon(certificate):
            certificate, key = new_authority(props["name"], key)
        return CreateResult("authority", {**props, "certificate": certificate, "key": key})

    def diff(self, _id: str, olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        from components.tls.issuing import ends_soon

        return DiffResult(changes=ends_soon(olds["certificate"]))

    def update(self, _id: str, olds: dict[str, Any], news: dict[str, Any]) -> UpdateResult:
        from components.tls.issuing import new_authority

        certificate, key = new_authority(news["name"], olds["key"])
        return UpdateResult({**news, "certificate": certificate, "key": key})


@dataclass(frozen=True)
class AuthorityArgs:
    """Arguments of Authority."""

    name: str
    """Subject of its certificate."""

    keeper: Keeper
    """The Secret with its certificate and its key, as `tls.crt` and `tls.key`."""


class Authority(Resource, module="ray-platform", name="Authority"):
    """The certificate and the key of an authority. The key does not change until the resource is deleted. An update
    renews the certificate in the last third of its ten years; running pods and pods of the renewed one accept each
    other.

    Outputs:
        certificate: PEM.
        key: PEM, a secret.
    """

    certificate: pulumi.Output[str]
    key: pulumi.Output[str]

    def __init__(self, name: str, args: AuthorityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        secret = pulumi.ResourceOptions(additional_secret_outputs=["key"])
        super().__init__(
            _Provider(),
            name,
            {"name": args.name, "keeper": args.keeper.inputs(), "certificate": None, "key": None},
            pulumi.ResourceOptions.merge(opts, secret),
        )


@dataclass(frozen=True)
class ClusterAuthorityArgs:
    """Arguments of ClusterAuthority."""

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
        self.register_outputs({})


def generated_authority(
    name: str, tls: TlsSettings | None, args: ClusterAuthorityArgs, parent: pulumi.Resource
) -> list[pulumi.Output[pulumi.Resource]]:
    """Creates the authority of a RayCluster with TLS, unless cert-manager does. Returns what its pods depend on."""
    if tls is None or tls.issuer:
        return []
    return [whole(ClusterAuthority(name, args, pulumi.ResourceOptions(parent=parent)))]
