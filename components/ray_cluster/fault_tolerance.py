"""Fault tolerance of the GCS: its tables in Redis, directly or through the gateway beside the head. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..redis.connection import CA_KEY, PASSWORD_KEY, USERNAME_KEY, RedisConnection
from ..redis_gateway import manifests as gateway
from ..redis_gateway.settings import GatewaySettings
from .pods import NOTHING_BESIDE, Beside
from .settings import RayClusterSettings

Body = dict[str, Any]

OPTIONS = "gcsFaultToleranceOptions"

RECONNECT_TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""For so many seconds a process of Ray tries to reach a GCS that went away, then it ends."""

RECONNECT_SECONDS = {"head": 60, "worker": 600}
"""What holds where it is not said: Ray's default (src/ray/common/ray_config_def.h), and KubeRay's for workers of a
cluster with GCS fault tolerance (ray-operator/controllers/ray/common/pod.go: configureGCSFaultTolerance)."""

_WITHOUT_GATEWAY = {"RAY_num_redis_request_retries": "9", "RAY_redis_retry_max_ms": "1000"}
"""A GCS that lost its master never finds the next one: it tries for so long, and its restart does. With Ray's 5 tries
it restarts before Sentinel has named the next master, and once more; with more than 9 it only restarts later. Measured
on real pods, `down-after` 2 s: 12.5 s without control plane, against 29.8 s."""

DELETION_TIMEOUT = "ray.io/gcs-ft-deletion-timeout"
"""Annotation with the seconds after which KubeRay lets a deleted RayCluster go although its keys are still in Redis
(since 1.6.2, raycluster_controller.go: getGCSFTDeletionTimeout)."""

_DELETION_SECONDS = 300
"""What holds without it. Older versions give the Job that cleans up as long."""

_ENDING_SECONDS = 300
"""So long the head's pod may take to end, and the operator to notice."""


@dataclass(frozen=True)
class RedisPlace:
    """Where a RayCluster keeps what its GCS knows."""

    connection: RedisConnection

    namespace: str
    """Name of the tenant's namespace: its user of Redis may touch only keys that begin with it."""

    gateway: GatewaySettings | None = field(default_factory=GatewaySettings)
    """What stands between Ray and Redis; None: nothing does."""

    storage_namespace: Any = None
    """What the RayCluster's keys begin with, or what will become it; None: it is not made yet."""


def storage_namespace(namespace: str, cluster: str, random: str) -> str:
    """The beginning of the keys of one RayCluster, after `RAY` (src/ray/gcs/store_client/redis_store_client.cc).

    No namespace and no name of a RayCluster has a dot, so that no other tenant's, and no other cluster's, begins so.
    `random`: made with the RayCluster, so that no later one of the same name finds its keys.
    """
    return f"{namespace}.{cluster}.{random}"


def options(place: RedisPlace, cluster: str) -> Body:
    """KubeRay's options for the RayCluster of that name."""
    connection = place.connection
    keys = place.storage_namespace
    scheme = "rediss" if connection.tls else "redis"
    return {
        "redisAddress": gateway.ADDRESS if place.gateway else f"{scheme}://{connection.address}",
        "redisUsername": _from_secret(connection, USERNAME_KEY),
        "redisPassword": _from_secret(connection, PASSWORD_KEY),
        "externalStorageNamespace": storage_namespace(place.namespace, cluster, "new") if keys is None else keys,
    }


def beside_head(settings: RayClusterSettings, place: RedisPlace | None) -> Beside:
    """What the head's pod has for it: the gateway, or what Ray has to be told where there is none."""
    if place is None:
        return NOTHING_BESIDE
    connection = place.connection
    if place.gateway:
        user = None if settings.run_as_user == "image" else gateway.USER
        return Beside(
            init_containers=(
                gateway.sidecar(place.gateway, connection, place.namespace, user, settings.image_pull_policy),
            ),
            volumes=(gateway.volume(connection, *gateway.volume_keys(connection)),),
        )
    if not connection.tls:
        return Beside(env=_WITHOUT_GATEWAY)
    return Beside(
        env={**_WITHOUT_GATEWAY, "RAY_REDIS_CA_CERT": f"{gateway.FOLDER}/{CA_KEY}"},
        volumes=(gateway.volume(connection, CA_KEY),),
        mounts=(gateway.MOUNT,),
    )


def deletion_seconds(annotations: Mapping[str, str]) -> int:
    """After how many seconds at most a RayCluster is gone that was deleted, also with Redis down.

    Raises nothing: what is no number counts as not said, as for KubeRay.
    """
    said = annotations.get(DELETION_TIMEOUT, "")
    number = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    return max(number, _DELETION_SECONDS) + _ENDING_SECONDS


def _from_secret(connection: RedisConnection, key: str) -> Body:
    return {"valueFrom": {"secretKeyRef": {"name": connection.secret, "key": key}}}
