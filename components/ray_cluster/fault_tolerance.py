"""Fault tolerance of the GCS: its tables in Redis, directly or through the gateway beside the head. Pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from components.ray_cluster.pods import CLUSTER_LABEL, NOTHING_BESIDE, Beside
from components.ray_cluster.settings import OwnedClusterSettings, RayClusterSettings
from components.redis.connection import CA_KEY, PASSWORD_KEY, USERNAME_KEY, RedisConnection
from components.redis_gateway import manifests as gateway
from components.redis_gateway.settings import GatewaySettings

Body = dict[str, Any]

OPTIONS = "gcsFaultToleranceOptions"

RECONNECT_TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""Seconds for which a Ray process tries to reach a GCS that is gone. Then the process ends."""

RECONNECT_SECONDS = {"head": 60, "worker": 600}
"""The value if it is not set: Ray's default (src/ray/common/ray_config_def.h), and KubeRay's for workers of a cluster
with GCS fault tolerance (ray-operator/controllers/ray/common/pod.go: configureGCSFaultTolerance)."""

_WITHOUT_GATEWAY = {"RAY_num_redis_request_retries": "9", "RAY_redis_retry_max_ms": "1000"}
"""Retries of a GCS that lost its Redis master. It never finds the next master itself; only its restart does. With Ray's
5 tries it restarts before Sentinel has elected the next master, and has to restart again. With more than 9 it only
restarts later. Measured on real pods, `down-after` 2 s: 12.5 s without control plane, against 29.8 s."""

DELETION_TIMEOUT = "ray.io/gcs-ft-deletion-timeout"
"""Annotation: seconds after which KubeRay removes its finalizer from a deleted RayCluster whose keys are still in Redis
(since 1.6.2, raycluster_controller.go: getGCSFTDeletionTimeout)."""

NAME_VARIABLE = "RAY_PLATFORM_CLUSTER_NAME"
"""Variable of the head with its RayCluster's name, if KubeRay generates that. KubeRay has it in RAY_CLUSTER_NAME, too,
but adds that after RAY_external_storage_namespace, and a variable can refer to earlier ones only (pod.go:
setContainerEnvVars)."""

_DELETION_SECONDS = 300
"""The default of the annotation. Older versions allow the clean-up Job the same time."""

_ENDING_SECONDS = 300
"""Seconds for the head's pod to end and for the operator to notice."""


@dataclass(frozen=True)
class RedisPlace:
    """Where the GCS of a RayCluster stores its tables."""

    connection: RedisConnection

    namespace: str
    """Name of the tenant's namespace. The tenant's Redis user can access only keys that begin with it."""

    gateway: GatewaySettings | None = field(default_factory=GatewaySettings)
    """The gateway between Ray and Redis; None: Ray connects to Redis itself."""

    storage_namespace: Any = None
    """Prefix of the RayCluster's keys, or its Output; None: it is not created yet."""


def storage_namespace(namespace: str, cluster: str, random: str) -> str:
    """The prefix of the keys of one RayCluster, after `RAY` (src/ray/gcs/store_client/redis_store_client.cc).

    Names of namespaces and RayClusters have no dot, so no other tenant and no other cluster has the same prefix.
    `random`: created with the RayCluster, so that a later RayCluster of the same name does not find its keys.
    """
    return f"{namespace}.{cluster}.{random}"


def options(place: RedisPlace, settings: RayClusterSettings) -> Body:
    """KubeRay's options for the RayCluster.

    That of a RayJob or RayService has its own generated name in its storage namespace: two of one owner may run at the
    same time. The kubelet puts it in place of the variable, in the head and in the pod of the clean-up Job.
    """
    connection = place.connection
    keys = place.storage_namespace
    if isinstance(settings, OwnedClusterSettings):
        keys = storage_namespace(place.namespace, settings.name, f"$({NAME_VARIABLE})")
    scheme = "rediss" if connection.tls else "redis"
    return {
        "redisAddress": gateway.ADDRESS if place.gateway else f"{scheme}://{connection.address}",
        "redisUsername": _from_secret(connection, USERNAME_KEY),
        "redisPassword": _from_secret(connection, connection.gateway_password_key if place.gateway else PASSWORD_KEY),
        "externalStorageNamespace": storage_namespace(place.namespace, settings.name, "new") if keys is None else keys,
    }


_NAME: Body = {
    "name": NAME_VARIABLE,
    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{CLUSTER_LABEL}']"}},
}


def beside_head(settings: RayClusterSettings, place: RedisPlace | None) -> Beside:
    """What the head's pod has for fault tolerance: the gateway, or without one the variables that Ray needs."""
    if place is None:
        return NOTHING_BESIDE
    connection = place.connection
    variables = (_NAME,) if isinstance(settings, OwnedClusterSettings) else ()
    if place.gateway:
        user = None if settings.run_as_user == "image" else gateway.USER
        return Beside(
            init_containers=(
                gateway.sidecar(place.gateway, connection, place.namespace, user, settings.image_pull_policy),
            ),
            volumes=(gateway.volume(connection, *gateway.volume_keys(connection)),),
            variables=variables,
        )
    if not connection.tls:
        return Beside(env=_WITHOUT_GATEWAY, variables=variables)
    return Beside(
        variables=variables,
        env={**_WITHOUT_GATEWAY, "RAY_REDIS_CA_CERT": f"{gateway.FOLDER}/{CA_KEY}"},
        volumes=(gateway.volume(connection, CA_KEY),),
        mounts=(gateway.MOUNT,),
    )


def deletion_seconds(annotations: Mapping[str, str]) -> int:
    """The most seconds that the deletion of a RayCluster takes, also with Redis down.

    A value that is not a number counts as not set, as in KubeRay.
    """
    annotated = annotations.get(DELETION_TIMEOUT, "")
    number = int(annotated) if annotated.isascii() and annotated.isdigit() and len(annotated) < 10 else 0
    return max(number, _DELETION_SECONDS) + _ENDING_SECONDS


def _from_secret(connection: RedisConnection, key: str) -> Body:
    return {"valueFrom": {"secretKeyRef": {"name": connection.secret, "key": key}}}
