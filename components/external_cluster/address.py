"""Addresses of external Ray clusters. Plain data."""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

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


def parse(text: str, schemes: Sequence[str], usual_port: int) -> Address:
    """Reads `scheme://host:port`. Raises ValueError with what is wrong and a text that would be right."""
    expected = f"write {schemes[0]}://HOST:{usual_port}"
    # First, because the other messages show the text.
    if "@" in text:
        raise ValueError("credentials do not belong into an address: put the token into a Secret, and set tokenSecret")
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
    _check_host(host)
    return Address(parts.scheme, host, port)


def _check_host(host: str) -> None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost":
            raise ValueError(f"{host} is the pod itself: write the address as pods reach it") from None
        if not _HOST.fullmatch(host) or len(host) > 253:
            message = f"{host!r} is not a full name: write NAME.NAMESPACE.svc for a Service, or a name with its domain"
            raise ValueError(message) from None
        return
    if "%" in host:
        raise ValueError(f"{host!r} is an address of one link: write the address as pods reach it")
    if address.is_loopback or address.is_unspecified or address.is_multicast or address.is_link_local:
        raise ValueError(f"{host} is no address of another machine: write the address as pods reach it")
