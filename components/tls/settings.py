"""Settings of TLS between the processes of a RayCluster."""

from typing import Literal

from core.types import DnsSubdomain, Settings


class IssuerSettings(Settings):
    """An issuer of cert-manager that may certify an authority (`isCA`)."""

    name: DnsSubdomain
    """Name of the issuer."""

    kind: Literal["Issuer", "ClusterIssuer"] = "Issuer"
    """`Issuer`: it is in the tenant's namespace. `ClusterIssuer`: it is for all namespaces."""


class TlsSettings(Settings):
    """TLS between the processes of a RayCluster, and for its clients. Dashboard and Serve still use HTTP."""

    issuer: IssuerSettings | None = None
    """Issuer of the cluster's authority. Default: none; the stack creates it, its key a secret of Pulumi."""
