"""Settings of an external Ray cluster, and its addresses."""

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator

from components.ray_cluster.settings import ClusterName
from core.problems import Problem
from core.types import (
    METADATA_SERVICES,
    CheckedSettings,
    Cidr,
    DnsSubdomain,
    Image,
    LabelKey,
    Settings,
    Timeout,
    Version,
)
from core.versions import image_version, version_tuple
from kuberay.ports import CLIENT_PORT, DASHBOARD_PORT
from kuberay.releases import FIRST_RAY_WITH_TOKENS

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOST = re.compile(rf"(?!.*\.[0-9]+$){_LABEL}(\.{_LABEL})+", re.ASCII)
_SERVICE = re.compile(rf"(?P<name>{_LABEL})\.(?P<namespace>{_LABEL})\.svc(\.{_LABEL})*", re.ASCII)


@dataclass(frozen=True)
class Address:
    """Where a part of a cluster listens."""

    scheme: str
    host: str
    """A name, or an IP address without brackets."""
    port: int

    @property
    def service(self) -> tuple[str, str] | None:
        """Name and namespace of the Service of Kubernetes that it is; None if it is outside."""
        found = _SERVICE.fullmatch(self.host)
        return (found["name"], found["namespace"]) if found else None

    @property
    def network(self) -> str | None:
        """The network of this one address; None for a name."""
        try:
            return str(ipaddress.ip_network(self.host))
        except ValueError:
            return None


def parse(text: str, schemes: Sequence[str], usual_port: int, *, of_pods: bool = True) -> Address:
    """Reads `scheme://host:port`. Raises ValueError with what is wrong and a text that would be right.

    `of_pods`: False if another machine reaches it, which may itself be the host.
    """
    expected = f"write {schemes[0]}://HOST:{usual_port}"
    # First, because the other messages show the text.
    if "@" in text:
        where = "a Secret, and set tokenSecret" if of_pods else "an environment variable, and set tokenVariable"
        raise ValueError(f"credentials do not belong into an address: put the token into {where}")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError(f"{text!r} is not an address with a port between 1 and 65535: {expected}") from None
    if parts.scheme not in schemes or not host:
        raise ValueError(f"{text!r} is not an address with {' or '.join(schemes)}: {expected}")
    if not port:
        raise ValueError(f"{text!r} has no port: write it, too; Ray's own is {usual_port}")
    if text != f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}":
        raise ValueError(f"{text!r} has more than a scheme, a host in lower case and a port: {expected}")
    if of_pods:
        _check_host(host)
    return Address(parts.scheme, host, port)


_OF_THE_CLOUD = ("metadata.google.internal", *METADATA_SERVICES)


def _check_host(host: str) -> None:
    if host in _OF_THE_CLOUD:
        raise ValueError(f"{host} is the cloud's, not of a Ray cluster: write the address as pods reach it")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost":
            raise ValueError(f"{host} is the pod itself: write the address as pods reach it") from None
        if not _HOST.fullmatch(host) or len(host) > 253:
            message = f"{host!r} is not a full name: write NAME.NAMESPACE.svc for a Service, or a name with its domain"
            raise ValueError(message) from None
        return
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        raise ValueError(f"{host} is an IPv4 address written as IPv6: write {address.ipv4_mapped}")
    if "%" in host:
        raise ValueError(f"{host!r} is an address of one link: write the address as pods reach it")
    if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local:
        raise ValueError(f"{host} is not the address of a different machine: write the address as pods reach it")


EXTERNAL_LABEL = "ray-platform/external-cluster"
"""Label of the pods that connect to an external cluster: its name."""


def _dashboard(text: str) -> str:
    parse(text, ("http", "https"), DASHBOARD_PORT)
    return text


def _client(text: str) -> str:
    parse(text, ("ray",), CLIENT_PORT)
    return text


class SecretKeySettings(Settings):
    """A key of a Secret in the tenant's namespace. The stack neither creates nor reads it."""

    name: DnsSubdomain
    """Name of the Secret."""

    key: LabelKey
    """Key in it."""


class Reached(Protocol):
    """A cluster that is reached by its dashboard's address."""

    @property
    def dashboard_address(self) -> str: ...

    @property
    def dashboard(self) -> Address: ...

    @property
    def plain_token(self) -> bool: ...


def problems_of_transport(cluster: Reached, to: str, *, token_leaves: bool, ca: str | None) -> Iterator[Problem]:
    """A token that others could read, and keys without effect. `to`: where it would go; `token_leaves`: whether it
    does; `ca`: the key with an authority, if it is set."""
    secure = cluster.dashboard.scheme == "https"
    exposed = token_leaves and not secure
    if exposed and not cluster.plain_token:
        message = (
            f"the token would be sent over http to {to}, and whoever reads it can run code on the cluster: use https, "
            "or set plainToken: true if all networks on the way are trusted"
        )
        yield Problem(("dashboardAddress",), cluster.dashboard_address, message, "external-plain-token")
    if cluster.plain_token and not exposed:
        message = f"has no effect, because no token is sent over http to {to}: remove it"
        yield Problem(("plainToken",), True, message, "external-without-effect")
    if ca and not secure:
        message = "is not used without https: remove it, or use https in dashboardAddress"
        yield Problem((ca,), None, message, "external-without-effect")


class ExternalClusterSettings(CheckedSettings):
    """A Ray cluster that exists already. Nothing of it is created, changed or deleted.

    A pod in the tenant's namespace checks the connection when the entry is added or changed, and again after a failure.
    """

    name: ClusterName
    """Name by which jobs refer to it. It must differ from those of the tenant's RayClusters and jobs."""

    dashboard_address: Annotated[str, AfterValidator(_dashboard)]
    """Address of the dashboard with its jobs API, as pods of the tenant reach it: `https://ray.example.com:8265`, or
    `http://NAME-head-svc.NAMESPACE.svc:8265` for a Service of Kubernetes."""

    client_address: Annotated[str, AfterValidator(_client)] | None = None
    """Address for clients, `ray://HOST:10001`; an output for your programs. Pods of the tenant may connect to it if
    `network.egress` allows it. Default: none."""

    image: Image
    """Image with Ray for the pods that check the connection and submit jobs. Its Ray may be of another release than the
    cluster's, and must be 2.52 or later for tokens."""

    ray_version: Version | None = None
    """Version of the cluster, which the check compares. Default: any."""

    token_secret: SecretKeySettings | None = None
    """The cluster's token. Default: it requires none."""

    ca_secret: SecretKeySettings | None = None
    """The certificate of the authority that has signed the dashboard's certificate. Default: the authorities that the
    image knows."""

    plain_token: bool = False
    """True: the token may be sent over http to an address outside of Kubernetes, where everybody on the way can read
    it."""

    cidrs: tuple[Cidr, ...] = ()
    """Networks of a dashboard outside of Kubernetes that is set by its name: NetworkPolicies know no names. Default:
    its port is open to any address, for the pods that connect to it."""

    ready_timeout: Timeout = "2m"
    """Time for which the check tries to connect. `up` waits for it."""

    @property
    def dashboard(self) -> Address:
        """`dashboard_address` in its parts."""
        return parse(self.dashboard_address, ("http", "https"), DASHBOARD_PORT)

    def problems(self) -> Iterator[Problem]:
        inside = self.dashboard.service is not None
        leaves, ca = self.token_secret is not None and not inside, "caSecret" if self.ca_secret else None
        yield from problems_of_transport(self, "an address outside of Kubernetes", token_leaves=leaves, ca=ca)
        version = image_version(self.image)
        if self.token_secret and version and version_tuple(version) < version_tuple(FIRST_RAY_WITH_TOKENS):
            message = f"its Ray sends no token, which needs {FIRST_RAY_WITH_TOKENS} or later: use a later image"
            yield Problem(("image",), self.image, message, "token-needs-ray")
        if self.cidrs and (inside or self.dashboard.network):
            message = "dashboardAddress determines where pods may connect to: remove it"
            yield Problem(("cidrs",), None, message, "external-without-effect")
