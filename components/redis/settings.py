"""What a stack file may say about the Redis in which RayClusters with `faultTolerance` keep the tables of their GCS."""

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
    """Where each node of Redis keeps its data: a PersistentVolumeClaim."""

    size: Memory = "1Gi"
    """Size of each volume."""

    storage_class_name: DnsSubdomain | None = None
    """StorageClass. Default: the cluster's default one."""


class RedisTlsSettings(Settings):
    """TLS between clients, nodes and Sentinels of Redis. Clients show no certificate: they have passwords."""

    issuer: IssuerSettings | None = None
    """Who certifies the nodes. Default: nobody; the stack makes a certificate for ten years. An `Issuer` has to be in
    the namespace of Redis."""

    authority: str | None = Field(default=None, pattern=r"^-----BEGIN CERTIFICATE-----\n(.*\n)+$")
    """Certificate of the issuer's authority, PEM, that clients check those of the nodes with."""

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.issuer is None) != (self.authority is None):
            lacking = "authority" if self.issuer else "issuer"
            message = f"an issuer and its authority's certificate go together: add {lacking}, or remove this key"
            said = "issuer" if self.issuer else "authority"
            raise Problems([Problem((said,), None, message, "redis-tls")])
        return self


class RedisExporterSettings(Settings):
    """Metrics for Prometheus, by an exporter beside each node, for the namespaces in `monitoring` of `network`."""

    image: Image = "docker.io/oliver006/redis_exporter:v1.74.0"
    """Image of the exporter."""

    resources: ComputeResources = ComputeResources(cpu="20m", memory="64Mi")
    """CPU and memory of the exporter."""


class RedisBackupSettings(Settings):
    """Copies of the data in a PersistentVolumeClaim of their own, from which they can be restored."""

    schedule: Annotated[str, AfterValidator(_five_fields)] = "0 * * * *"
    """When, as cron has it. Default: every hour."""

    keep: Annotated[int, Strict(), Field(ge=1, le=1000)] = 24
    """So many copies are kept, the newest."""

    storage: RedisStorageSettings = RedisStorageSettings(size="5Gi")
    """Where they are kept."""


class RedisSettings(Settings):
    """Redis, in which RayClusters with `faultTolerance` keep what they know of jobs, actors and nodes.

    A head that is lost finds it there again, and workers go on meanwhile.
    """

    mode: Literal["managed", "single", "external"] = "managed"
    """`managed`: three nodes and three Sentinels, one of which may be lost. `single`: one node, for development.
    `external`: there is one already, `external` says where."""

    scope: Literal["shared", "perTenant"] = "shared"
    """`shared`: one Redis, with a user for each tenant, who reaches the tenant's own keys alone. `perTenant`: one in
    the namespace of each tenant that uses it."""

    namespace: DnsLabel | None = None
    """Namespace of the shared Redis. Default: the operator's. Another one is made by the stack."""

    image: Image = DEFAULT_IMAGE
    """Image with redis-server and redis-cli, of Redis or Valkey, 7.0 or newer, that runs as user 999."""

    image_pull_secrets: tuple[DnsSubdomain, ...] = ()
    """Secrets in its namespace to pull the image with."""

    storage: RedisStorageSettings = RedisStorageSettings()
    """Where each node keeps its data. A change replaces the StatefulSet; volumes that are there stay as they are."""

    fsync: Literal["everysec", "always", "no"] = "everysec"
    """When what was written is forced to the disk: what a machine that loses power may lose. `everysec`: a second.
    `always`: nothing, and each write waits for the disk. `no`: what the kernel has not yet written."""

    password_generations: Annotated[tuple[Generation, ...], AfterValidator(_one_or_two_in_order)] = (1,)
    """Which passwords Redis takes, the older first. To change all: `[1, 2]`, `up`, wait two minutes, `[2]`, `up`."""

    resources: ComputeResources | None = None
    """CPU that each node asks for, and its memory, of which Redis fills 60 % with data. Default: 100m and 256Mi, and
    10m and 64Mi for each RayCluster that uses it, counted as 1, 2, 4, 8 and so on."""

    spread: Literal["preferred", "required"] = "preferred"
    """`preferred`: its pods are on nodes of their own as far as there is room. `required`: or else they do not
    start."""

    node_selector: Labels = Field(default_factory=dict)
    """Labels of the nodes that may run it."""

    tolerations: tuple[Toleration, ...] = ()
    """Taints that its pods bear."""

    cluster_domain: DnsSubdomain = "cluster.local"
    """What the cluster's names in DNS end with, as its kubelets' `clusterDomain` says."""

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
        said = sorted(self.model_fields_set - {"mode", "external", "gateway"})
        message = "mode external makes no Redis: remove this key, or set mode to managed or single"
        return [Problem((to_camel(field),), None, message, "redis-mode") for field in said]

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
        """How many nodes there are."""
        return 3 if self.mode == "managed" else 1
