"""Settings of an external Redis."""

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, Strict, model_validator

from core.problems import Problem, Problems
from core.types import Cidr, DnsLabel, DnsSubdomain, Settings

MOST_HOST = 253


def _host_and_port(value: Any) -> Any:
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    if not colon or not host or "/" in host or not port.isdigit() or not 0 < int(port) < 65536 or len(host) > MOST_HOST:
        raise ValueError(f"{value!r} is not HOST:PORT, for example redis.example.com:6379, with a port from 1 to 65535")
    return value


HostAndPort = Annotated[str, BeforeValidator(_host_and_port)]
"""Host and port: `redis.example.com:6379`."""


class ExternalSettings(Settings):
    """An external Redis: its Sentinels, or its own address. It must not evict keys (`maxmemory-policy noeviction`): a
    RayCluster whose tables are lost does not start again."""

    sentinels: tuple[HostAndPort, ...] = ()
    """All of its Sentinels."""

    master_name: str = "mymaster"
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

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if bool(self.sentinels) == bool(self.address):
            problem = "names both sentinels and an address" if self.address else "says neither sentinels nor an address"
            message = f"{problem}: name all of its Sentinels, or, where it has none, its address"
            raise Problems([Problem((), None, message, "redis-external")])
        if self.namespace and self.cidrs:
            message = "cidrs are for a Redis outside the cluster, and namespace says that it is inside: remove one"
            raise Problems([Problem(("cidrs",), list(self.cidrs), message, "redis-external")])
        return self
