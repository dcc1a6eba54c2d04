"""The certificate authority for the pods of one RayCluster: created once by the stack, or by cert-manager.

Its key is a secret of Pulumi. Pulumi's own provider for this, pulumi-tls, would be one more plugin to download for a
key and a certificate.
"""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider

from components.bodies import in_namespace
from components.cluster import AMBIENT, Connection
from components.dynamic import Keeper, Resource, kept
from components.kubernetes import KubernetesObject
from components.tls.manifests import TlsSettings, authority_certificate, authority_secret, secret_name


class _Provider(ResourceProvider):
    serialize_as_secret_always = False

    def create(self, props: dict[str, Any]) -> CreateResult:
        existing = kept(props.get("keeper"))
        if "tls.crt" in existing and "tls.key" in existing:
            certificate, key = existing["tls.crt"], existing["tls.key"]
        else:
            # Imported here: only the creation of a certificate needs `cryptography`.
            from components.tls.issuing import new_authority

            certificate, key = new_authority(props["name"])
        return CreateResult("authority", {**props, "certificate": certificate, "key": key})

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        return DiffResult(changes=False)


@dataclass(frozen=True)
class AuthorityArgs:
    """Arguments of Authority."""

    name: str
    """Subject of its certificate."""

    keeper: Keeper
    """The Secret with its certificate and its key, as `tls.crt` and `tls.key`."""


class Authority(Resource, module="ray-platform", name="Authority"):
    """The certificate and the key of an authority. They do not change until the resource is deleted.

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

    settings: TlsSettings

    cluster: str
    """Name of the RayCluster."""

    namespace: pulumi.Input[str]

    connection: Connection = AMBIENT


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
            keeper = Keeper(args.namespace, secret_name(args.cluster), args.connection)
            authority = Authority(f"{name}-authority", AuthorityArgs(args.cluster, keeper), own)
            body = authority_secret(args.cluster, authority.certificate, authority.key)
            KubernetesObject(f"{name}-secret", in_namespace(body, args.namespace), own)
        self.register_outputs({})
