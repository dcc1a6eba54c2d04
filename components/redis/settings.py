"""Settings of the Redis in which RayClusters with `faultTolerance` store the tables of their GCS, own or external.

And the resources of its nodes.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Strict
from pydantic.alias_generators import to_camel

from components.operator.settings import ComputeResources, Toleration
from components.redis.existing_server import ExternalSettings
from components.redis_gateway.settings import GatewaySettings
from components.tls.manifests import IssuerSettings
from core.problems import Problem
from core.quantities import amount
from core.types import CheckedSettings, DnsLabel, DnsSubdomain, Image, Labels, Memory, Settings, switched
from core.versions import image_tag
from kuberay.cron import cron_job_fault

DEFAULT_IMAGE = "docker.io/library/redis:7.2.11"
"""Redis' own image. 7.2 is the last release line with a BSD licence."""

OLDEST = "7.0"
"""The first release with an AOF of several files in a folder, by which a node sees whether it has data
(scripts/redis.sh), and the last one with a feature that scripts or ACLs need."""

_VERSION_OF_REDIS = re.compile(r"v?(\d+)(?:\.(\d+))?(?![\w])")


def _new_enough(image: str) -> str:
    """Refuses images named `redis` with a tag of an older release; of other names the tag may mean anything."""
    name, version = image.partition("@")[0].rpartition("/")[2].partition(":")[0], image_tag(image) or ""
    found = _VERSION_OF_REDIS.match(version)
    oldest = tuple(map(int, OLDEST.split(".")))
    # A tag of one number is the newest release that begins with it.
    if name == "redis" and found and (int(found[1]), int(found[2] or oldest[1])) < oldest:
        raise ValueError(
            f"{image!r} is older than Redis {OLDEST}, the first with a folder for its AOF: use a newer one"
        )
    return image


Generation = Annotated[int, Strict(), Field(ge=1, le=2**31 - 1)]


def _one_or_two_in_order(generations: tuple[int, ...]) -> tuple[int, ...]:
    if not 1 <= len(generations) <= 2 or any(before >= after for before, after in pairwise(generations)):
        raise ValueError(
            f"{list(generations)} is not a list of one or two passwords, the older first: "
            "write [1], during a rotation [1, 2], after it [2]"
        )
    return generations


def _fires(schedule: str) -> str:
    if fault := cron_job_fault(schedule):
        raise ValueError(
            f"{schedule!r} is not a schedule of a Kubernetes CronJob, {fault}: write for example 30 3 * * *"
        )
    return schedule


class RedisStorageSettings(Settings):
    """Storage of each Redis node: a PersistentVolumeClaim."""

    size: Memory = "1Gi"
    """Size of each volume."""

    storage_class_name: DnsSubdomain | None = None
    """StorageClass. Default: the cluster's default one."""


class RedisTlsSettings(CheckedSettings):
    """TLS between clients, nodes and Sentinels of Redis. Clients use passwords, not certificates."""

    issuer: IssuerSettings | None = None
    """Issuer of the nodes' certificate. Default: none; the stack creates a certificate that is valid for ten years. An
    `Issuer` must be in the namespace of Redis."""

    authority: str | None = Field(default=None, pattern=r"^-----BEGIN CERTIFICATE-----\n(.*\n)+$")
    """Certificate of the issuer's authority, PEM, with which clients verify the nodes."""

    def problems(self) -> Iterator[Problem]:
        if (self.issuer is None) != (self.authority is None):
            lacking = "authority" if self.issuer else "issuer"
            message = f"an issuer and its authority's certificate go together: add {lacking}, or remove this key"
            key = "issuer" if self.issuer else "authority"
            yield Problem((key,), None, message, "redis-tls")


class RedisExporterSettings(Settings):
    """Metrics for Prometheus, by an exporter beside each node, for the namespaces in `monitoring` of `network`."""

    image: Image = "docker.io/oliver006/redis_exporter:v1.74.0"
    """Image of the exporter."""

    resources: ComputeResources = ComputeResources(cpu="20m", memory="64Mi")
    """CPU and memory of the exporter."""


class RedisBackupSettings(Settings):
    """Backups of the data in a separate PersistentVolumeClaim, from which they can be restored."""

    schedule: Annotated[str, AfterValidator(_fires)] = "0 * * * *"
    """Schedule in cron format, or `@every 6h`, in the time zone of the cluster. Default: every hour."""

    keep: Annotated[int, Strict(), Field(ge=1, le=1000)] = 24
    """Number of backups to keep, the newest."""

    storage: RedisStorageSettings = RedisStorageSettings(size="5Gi")
    """Storage of the backups."""


class RedisSettings(CheckedSettings):
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

    image: Annotated[Image, AfterValidator(_new_enough)] = DEFAULT_IMAGE
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
    gateway: Annotated[
        GatewaySettings | None, BeforeValidator(switched, json_schema_input_type=GatewaySettings | bool)
    ] = None
    """The gateway beside each fault tolerant head. Default: on for a Redis of the stack, off for an existing one."""

    @property
    def used_gateway(self) -> GatewaySettings | None:
        """The gateway beside heads; None: there is none."""
        if "gateway" in self.model_fields_set:
            return self.gateway
        return GatewaySettings() if self.mode != "external" else None

    def problems(self) -> list[Problem]:
        return [*self._of_other_modes(), *self._of_one_namespace(), *self._of_the_gateway(), *self._too_small()]

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
        replicas = self.used_gateway.wait_replicas if self.used_gateway else None
        existing = self.external.replicas if self.external else self.nodes - 1
        if replicas is None or replicas <= existing:
            return []
        message = f"no write is acknowledged before {replicas} replicas have it, and there are {existing}: lower it"
        return [Problem(("gateway", "waitReplicas"), replicas, message, "redis-wait-replicas")]

    def _too_small(self) -> Iterator[Problem]:
        """Sizes with which no Redis starts, or fills its volume before it refuses writes."""
        memory, size = self.resources.memory if self.resources else None, self.storage.size
        if memory and amount(memory) < LEAST_MEMORY:
            message = (
                f"{memory} is too little for a Redis, which is killed when it rewrites its file: set at least 32Mi"
            )
            yield Problem(("resources", "memory"), memory, message, "redis-memory")
        if amount(size) < LEAST_STORAGE:
            message = (
                f"{size} is too little for a Redis, which lets its file grow to 64 MiB before it writes a shorter one "
                "beside it: set at least 128Mi"
            )
            yield Problem(("storage", "size"), size, message, "redis-storage")
        elif memory and amount(size) < max_memory(memory):
            message = (
                f"{size} is less than the data that fit into its memory, 60 % of {memory}: set at least "
                f"{-(-max_memory(memory) // 2**20)}Mi, or lower resources.memory"
            )
            yield Problem(("storage", "size"), size, message, "redis-storage")

    @property
    def nodes(self) -> int:
        return 3 if self.mode == "managed" else 1


SENTINEL = ComputeResources(cpu="100m", memory="64Mi")
"""A Sentinel uses 7 MiB, and must answer even if Redis beside it does not."""

LEAST_MEMORY = 32 * 2**20
"""Bytes. In a container of 12 MiB Redis 7.0 is killed when it rewrites its AOF with all data that it may have, in one
of 16 MiB it is not (measured without replicas, whose buffers come on top)."""

LEAST_STORAGE = 128 * 2**20
"""Bytes: an AOF before its first rewrite (redis.conf: auto-aof-rewrite-min-size), and room for the next one."""

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


_CLIENTS = Decimal("0.15")
"""Share of a node's memory for commands that arrive and answers that nobody has read, of all clients together. A value
takes six times its size while it is written (docs/measurements/redis-gateway.md), so a larger one would not fit."""


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


def client_memory(memory: str) -> int:
    """Bytes of all clients (`maxmemory-clients`), and of answers that one has not read. Beyond it the client that has
    most is disconnected."""
    return int(amount(memory) * _CLIENTS)
