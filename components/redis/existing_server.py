"""Settings of an existing Redis: where it is, and how RayClusters connect to it."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, Strict

from core.problems import Path, Problem
from core.types import CheckedSettings, Cidr, DnsLabel, DnsSubdomain

_IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
"""The last part of a host that programs read as an IPv4 address, some in forms that others refuse: `10.1`, `0177.0.0.1`
(url.spec.whatwg.org, ends-in-a-number checker)."""

_PORT = re.compile(r"[1-9][0-9]{0,4}")

_LOCAL_NAMES = ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")

_SERVICE = re.compile(r"(?:.+\.)?[^.]+\.(?P<namespace>[^.]+)\.svc(\.cluster\.local)?")
"""The name of a Service, or of a pod behind one (kubernetes.io, DNS for Services and Pods)."""


class _Place(NamedTuple):
    """Host and port; hosts are equal if they are the same host."""

    host: str | _IpAddress
    port: int


def _place(text: str) -> _Place:
    """Raises ValueError."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    found = _host(host[1:-1], bracketed=True) if bracketed else _host(host, bracketed=False)
    if not colon or found is None or not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError(
            f"{text!r} is not HOST:PORT, for example redis.example.com:6379, with a port from 1 to 65535"
            f"{'; write an IPv6 address in brackets' if ':' in host and not bracketed else ''}"
        )
    return _Place(found, int(port))


def _host(text: str, bracketed: bool) -> str | _IpAddress | None:
    """None: it is neither a name nor an address."""
    if bracketed:
        return _ip(text, ipaddress.IPv6Address)
    name = text.removesuffix(".")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return _ip(text, ipaddress.IPv4Address)
    return name.lower() if _HOST.fullmatch(name) else None


def _ip(text: str, kind: type[_IpAddress]) -> _IpAddress | None:
    try:
        found = kind(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found


def _why_not_reached(host: str | _IpAddress) -> str | None:
    """Why no head can reach a host, whatever the network."""
    if isinstance(host, str):
        local = host in _LOCAL_NAMES or host.endswith(".localhost")
    else:
        local = host.is_loopback or host.is_unspecified
        if host.is_link_local or host.is_multicast or (host.version == 4 and host.is_reserved):
            return "is an address of one network segment, of a group or of nobody, so it is not a server's"
    return "is the head's own pod, where no Redis runs" if local else None


def _host_and_port(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not HOST:PORT, for example redis.example.com:6379")  # noqa: TRY004
    if reason := _why_not_reached(_place(value).host):
        raise ValueError(f"{value!r} {reason}: write the name or address that pods reach Redis by")
    return value


HostAndPort = Annotated[str, BeforeValidator(_host_and_port)]
"""Host and port: `redis.example.com:6379`."""


class ExternalSettings(CheckedSettings):
    """An external Redis: its Sentinels, or its own address. It must not evict keys (`maxmemory-policy noeviction`): a
    RayCluster whose tables are lost does not start again."""

    sentinels: tuple[HostAndPort, ...] = ()
    """All of its Sentinels."""

    master_name: str = Field(default="mymaster", min_length=1, pattern=r"^\S+$")
    """The Sentinels' name of the master."""

    address: HostAndPort | None = None
    """Address of Redis itself, if it has no Sentinels."""

    replicas: Annotated[int, Strict(), Field(ge=0, le=16)] = 0
    """Replicas beside the master. With them writes are acknowledged once a replica has them."""

    secret_name: DnsSubdomain
    """Secret with keys `username` (`default` if Redis has no users) and `password`, with `tls` also `ca.crt`. It is in
    `secretNamespace`, from where each tenant gets a copy, or else in each tenant's namespace."""

    secret_namespace: DnsLabel | None = None
    """Namespace of the Secret. Default: each tenant's namespace has a Secret of that name."""

    tls: bool = False
    """True: TLS, with a certificate of the authority in `ca.crt`."""

    namespace: DnsLabel | None = None
    """Namespace of its pods, to which NetworkPolicies allow connections of heads. Default: it is outside the
    cluster."""

    cidrs: tuple[Cidr, ...] = ()
    """Its addresses outside the cluster, to which NetworkPolicies allow connections of heads."""

    verify: bool = True
    """False: it is not checked before it is used."""

    def problems(self) -> list[Problem]:
        return [*self._one_of_them(), *self._repeated(), *self._not_allowed()]

    def _one_of_them(self) -> Iterator[Problem]:
        if bool(self.sentinels) == bool(self.address):
            problem = (
                "names both sentinels and an address" if self.address else "names neither sentinels nor an address"
            )
            message = f"{problem}: name all of its Sentinels, or, if it has none, its address"
            yield Problem((), None, message, "redis-external")
        if self.namespace and self.cidrs:
            message = (
                "cidrs are for a Redis outside the cluster, and namespace is set for one inside: remove one of them"
            )
            yield Problem(("cidrs",), list(self.cidrs), message, "redis-external")

    def _repeated(self) -> Iterator[Problem]:
        places = [_place(each) for each in self.sentinels]
        for index, place in enumerate(places):
            if place in places[:index]:
                message = (
                    f"{self.sentinels[index]!r} is named already, as {self.sentinels[places.index(place)]!r}: name "
                    "each Sentinel once, so that one that is lost does not count twice"
                )
                yield Problem(("sentinels", index), self.sentinels[index], message, "redis-sentinel-twice")

    def _not_allowed(self) -> Iterator[Problem]:
        """Addresses to which the NetworkPolicies that follow from `namespace` and `cidrs` allow no connection."""
        named: list[tuple[Path, str]] = [(("sentinels", index), each) for index, each in enumerate(self.sentinels)]
        for path, text in [*named, *([(("address",), self.address)] if self.address else [])]:
            if message := self._why_not_allowed(_place(text).host):
                yield Problem(path, text, f"{text!r} {message}", "redis-address")

    def _why_not_allowed(self, host: str | _IpAddress) -> str | None:
        service = _SERVICE.fullmatch(host) if isinstance(host, str) else None
        if service and service["namespace"] != self.namespace and (self.namespace or self.cidrs):
            inside = service["namespace"]
            fix = f"set namespace to {inside!r}{', and remove cidrs' if self.cidrs else ''}"
            return f"is in namespace {inside!r} of the cluster, where heads may not connect to: {fix}"
        if not self.cidrs or isinstance(host, str):
            return None
        if any(host in ipaddress.ip_network(each) for each in self.cidrs):
            return None
        return (
            f"is in none of its own cidrs ({', '.join(self.cidrs)}), so NetworkPolicies would keep heads from it: add "
            f"{ipaddress.ip_network(host)} there"
        )
