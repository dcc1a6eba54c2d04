"""Settings of the Redis in which RayClusters with `faultTolerance` store the tables of their GCS, own or external.

And the resources of its nodes.
"""

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, Strict, model_validator
from pydantic.alias_generators import to_camel

from core.problems import Problem, Problems
from core.quantities import amount
from core.types import Cidr, DnsLabel, DnsSubdomain, Image, Labels, Memory, Settings

from ..operator.settings import ComputeResources, Toleration
from ..redis_gateway.settings import GatewaySettings
from ..tls.manifests import IssuerSettings

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
            problem = (
                "names both sentinels and an address" if self.address else "names neither sentinels nor an address"
            )
            message = f"{problem}: name all of its Sentinels, or, if it has none, its address"
            raise Problems([Problem((), None, message, "redis-external")])
        if self.namespace and self.cidrs:
            message = (
                "cidrs are for a Redis outside the cluster, and namespace is set for one inside: remove one of them"
            )
            raise Problems([Problem(("cidrs",), list(self.cidrs), message, "redis-external")])
        return self


DEFAULT_IMAGE = "docker.io/library/redis:7.2.11"
"""Redis' own image. 7.2 is the last release line with a BSD licence."""

_CRON_FIELDS = 5

Generation = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]


def _one_or_two_in_order(generations: tuple[int, ...]) -> tuple[int, ...]:
    if not 1 <= len(generations) <= 2 or any(before >= after for before, after in pairwise(generations)):
        raise ValueError(
            f"{list(generations)} is no list of one password or two, the older first: "
            "write [1], during a rotation [1, 2], after it [2]"
        )
    return generations


def _five_fields(schedule: str) -> str:
    if len(schedule.split()) != _CRON_FIELDS:
        raise ValueError(f"{schedule!r} is not a schedule of cron's five fields: write for example 30 3 * * *")
    return schedule


class RedisStorageSettings(Settings):
    """Storage of each Redis node: a PersistentVolumeClaim."""

    size: Memory = "1Gi"
    """Size of each volume."""

    storage_class_name: DnsSubdomain | None = None
    """StorageClass. Default: the cluster's default one."""


class RedisTlsSettings(Settings):
    """TLS between clients, nodes and Sentinels of Redis. Clients use passwords, not certificates."""

    issuer: IssuerSettings | None = None
    """Issuer of the nodes' certificate. Default: none; the stack creates a certificate that is valid for ten years. An
    `Issuer` must be in the namespace of Redis."""

    authority: str | None = Field(default=None, pattern=r"^-----BEGIN CERTIFICATE-----\n(.*\n)+$")
    """Certificate of the issuer's authority, PEM, with which clients verify the nodes."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.issuer is None) != (self.authority is None):
            lacking = "authority" if self.issuer else "issuer"
            message = f"an issuer and its authority's certificate go together: add {lacking}, or remove this key"
            key = "issuer" if self.issuer else "authority"
            raise Problems([Problem((key,), None, message, "redis-tls")])
        return self


class RedisExporterSettings(Settings):
    """Metrics for Prometheus, by an exporter beside each node, for the namespaces in `monitoring` of `network`."""

    image: Image = "docker.io/oliver006/redis_exporter:v1.74.0"
    """Image of the exporter."""

    resources: ComputeResources = ComputeResources(cpu="20m", memory="64Mi")
    """CPU and memory of the exporter."""


class RedisBackupSettings(Settings):
    """Backups of the data in a separate PersistentVolumeClaim, from which they can be restored."""

    schedule: Annotated[str, AfterValidator(_five_fields)] = "0 * * * *"
    """Schedule in cron format. Default: every hour."""

    keep: Annotated[int, Strict(), Field(ge=1, le=1000)] = 24
    """Number of backups to keep, the newest."""

    storage: RedisStorageSettings = RedisStorageSettings(size="5Gi")
    """Storage of the backups."""


class RedisSettings(Settings):
    """Redis, in which RayClusters with `faultTolerance` store the state of jobs, actors and nodes.

    A restarted head reads it again. Workers keep running meanwhile.
    """

    mode: Literal["managed", "single", "external"] = "managed"
    """`managed`: three nodes and three Sentinels, one of which may be lost. `single`: one node, for development.
    `external`: an existing Redis, see `external`."""

    scope: Literal["shared", "perTenant"] = "shared"
    """`shared`: one Redis, with a user for each tenant that can access only the tenant's keys. `perTenant`: one Redis
    in the namespace of each tenant that uses it."""

    namespace: DnsLabel | None = None
    """Namespace of the shared Redis. Default: the operator's. The stack creates any other namespace."""

    image: Image = DEFAULT_IMAGE
    """Image with redis-server and redis-cli, of Redis or Valkey, 7.0 or newer, that runs as user 999."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in its namespace to pull the image with."""

    storage: RedisStorageSettings = RedisStorageSettings()
    """Storage of each node. A change replaces the StatefulSet; existing volumes stay unchanged."""

    fsync: Literal["everysec", "always", "no"] = "everysec"
    """When Redis flushes writes to the disk, which determines the loss after a power failure. `everysec`: one second.
    `always`: nothing, but each write waits for the disk. `no`: all writes that the kernel has not flushed."""

    password_generations: Annotated[tuple[Generation, ...], AfterValidator(_one_or_two_in_order)] = (1,)
    """The passwords that Redis accepts, the older first. To change all: `[1, 2]`, `up`, wait two minutes, `[2]`,
    `up`."""

    resources: ComputeResources | None = None
    """CPU request and memory of each node; Redis uses 60 % of the memory for data. Default: 100m and 256Mi, plus 10m
    and 64Mi for each RayCluster that uses it; their number is rounded up to 1, 2, 4, 8 and so on."""

    spread: Literal["preferred", "required"] = "preferred"
    """`preferred`: its pods are on different nodes if possible. `required`: pods without a different node do not
    start."""

    node_selector: Labels = Field(default_factory=dict)
    """Labels of the nodes that may run it."""

    tolerations: tuple[Toleration, ...] = ()
    """Taints that its pods tolerate."""

    cluster_domain: DnsSubdomain = "cluster.local"
    """The cluster's DNS domain, as in `clusterDomain` of its kubelets."""

    tls: RedisTlsSettings | None = None
    exporter: RedisExporterSettings | None = None
    backup: RedisBackupSettings | None = None
    external: ExternalSettings | None = None
    gateway: GatewaySettings = GatewaySettings()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if problems := [*self._of_other_modes(), *self._of_one_namespace(), *self._of_the_gateway()]:
            raise Problems(problems)
        return self

    def _of_other_modes(self) -> list[Problem]:
        if self.mode != "external":
            if self.external is None:
                return []
            message = f"is for an existing Redis, and mode is {self.mode}: set mode to external"
            return [Problem(("external",), None, message, "redis-mode")]
        if self.external is None:
            message = "mode external needs the address of the existing Redis: set external"
            return [Problem(("mode",), "external", message, "redis-mode")]
        configured = sorted(self.model_fields_set - {"mode", "external", "gateway"})
        message = "mode external creates no Redis: remove this key, or set mode to managed or single"
        return [Problem((to_camel(field),), None, message, "redis-mode") for field in configured]

    def _of_one_namespace(self) -> list[Problem]:
        if self.scope == "shared" or self.namespace is None:
            return []
        message = "scope perTenant creates a Redis in each tenant's namespace: remove this key, or set scope to shared"
        return [Problem(("namespace",), self.namespace, message, "redis-namespace")]

    def _of_the_gateway(self) -> list[Problem]:
        replicas, existing = self.gateway.wait_replicas, self.external.replicas if self.external else self.nodes - 1
        if replicas is None or replicas <= existing:
            return []
        message = f"no write is acknowledged before {replicas} replicas have it, and there are {existing}: lower it"
        return [Problem(("gateway", "waitReplicas"), replicas, message, "redis-wait-replicas")]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return 3 if self.mode == "managed" else 1


SENTINEL = ComputeResources(cpu="100m", memory="64Mi")
"""A Sentinel uses 7 MiB, and must answer even if Redis beside it does not."""

_CPU = (100, 10)
_MEMORY = (256, 64)
"""Millicores and MiB: of a node without clusters, and for each cluster. The tables of a RayCluster are some MiB. Most
of that is data of its jobs (functions, runtime environments up to 16 MiB)."""

_DATA = Decimal("0.6")
"""Share of a node's memory for data. The rest is for copies during a rewrite of the AOF, for replicas that lag behind,
and for connections."""

_LAG = Decimal("0.15")
"""Share of a node's memory for writes that wait for a replica. Beyond it the replica is disconnected and has to
synchronize again."""


def resources(settings: RedisSettings, clusters: int) -> ComputeResources:
    """CPU and memory of a node. `clusters`: how many RayClusters keep their tables there."""
    if settings.resources:
        return settings.resources
    # Changed resources restart every node, so few changes of the number of RayClusters change them: 1, 2, 4, 8, ...
    counted = 1 << max(clusters - 1, 0).bit_length()
    cpu, memory = (each[0] + each[1] * counted for each in (_CPU, _MEMORY))
    return ComputeResources(cpu=f"{cpu}m", memory=f"{memory}Mi")


def max_memory(memory: str) -> int:
    """Bytes for data (`maxmemory`). Redis refuses more with an error and evicts nothing."""
    return int(amount(memory) * _DATA)


def output_buffer(memory: str) -> int:
    """Bytes that may wait for a replica (`client-output-buffer-limit`)."""
    return int(amount(memory) * _LAG)
