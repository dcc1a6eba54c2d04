"""What a stack file may say about TLS between the processes of a RayCluster."""

from typing import Literal

from core.types import DnsSubdomain, Settings


class IssuerSettings(Settings):
    """An issuer of cert-manager that may certify an authority (`isCA`)."""

    name: DnsSubdomain
    """Name of the issuer."""

    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """`Issuer`: it is in the tenant's namespace. `ClusterIssuer`: it is for all."""


class TlsSettings(Settings):
    """TLS between the processes of a RayCluster, and for its clients. The dashboard and Serve speak HTTP as before."""

    issuer: IssuerSettings | None = None
    """Who certifies the cluster's authority. Default: nobody; the stack makes it, its key a secret of Pulumi."""
