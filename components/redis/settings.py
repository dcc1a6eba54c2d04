"""Settings of the Redis in which RayClusters with `faultTolerance` store the tables of their GCS."""

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, Strict, model_validator
from pydantic.alias_generators import to_camel

from core.problems import Problem, Problems
from core.types import DnsLabel, DnsSubdomain, Image, Labels, Memory, Settings

from ..operator.settings import ComputeResources, Toleration
from ..redis_gateway.settings import GatewaySettings
from ..tls.settings import IssuerSettings
from .external import ExternalSettings

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
    def _goes_together(self) -> Self:
        if problems := [*self._of_other_modes(), *self._of_one_namespace(), *self._of_the_gateway()]:
            raise Problems(problems)
        return self

    def _of_other_modes(self) -> list[Problem]:
        if self.mode != "external":
            if self.external is None:
                return []
            message = f"says where a Redis is that is there already, and mode is {self.mode}: set mode to external"
            return [Problem(("external",), None, message, "redis-mode")]
        if self.external is None:
            message = "external says that there is a Redis already: say where in external"
            return [Problem(("mode",), "external", message, "redis-mode")]
        configured = sorted(self.model_fields_set - {"mode", "external", "gateway"})
        message = "mode external makes no Redis: remove this key, or set mode to managed or single"
        return [Problem((to_camel(field),), None, message, "redis-mode") for field in configured]

    def _of_one_namespace(self) -> list[Problem]:
        if self.scope == "shared" or self.namespace is None:
            return []
        message = "scope perTenant puts a Redis into each tenant's namespace: remove this key, or set scope to shared"
        return [Problem(("namespace",), self.namespace, message, "redis-namespace")]

    def _of_the_gateway(self) -> list[Problem]:
        wanted, there = self.gateway.wait_replicas, self.external.replicas if self.external else self.nodes - 1
        if wanted is None or wanted <= there:
            return []
        message = f"no write is acknowledged before {wanted} replicas have it, and there are {there}: lower it"
        return [Problem(("gateway", "waitReplicas"), wanted, message, "redis-wait-replicas")]

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return 3 if self.mode == "managed" else 1
