"""The gateway as a native sidecar: an init container that goes on running (Kubernetes 1.29). Pure functions.

KubeRay's Job that cleans up Redis is made of the head's pod template, whose init containers it keeps
(ray-operator/controllers/ray/raycluster_controller.go: buildRedisCleanupJob), so that it has the gateway too.
"""

from typing import Any

from core.types import seconds

from ..redis.connection import CA_KEY, USERNAME_KEY, RedisConnection
from .settings import GatewaySettings

Body = dict[str, Any]

NAME = "redis-gateway"
"""Of the container, and the beginning of the keys that the gateway writes for itself."""

PORT = 6399
"""Where Ray finds Redis, on the loopback interface of the pod. Not 6379, which is the head's own GCS."""

METRICS_PORT = 9399
"""Of `/metrics`, `/readyz` and `/livez`."""

ADDRESS = f"redis://127.0.0.1:{PORT}"

FIRST_KUBERNETES = (1, 29)
"""Native sidecars are on by default since this version (kubernetes.io, Sidecar Containers)."""

FOLDER = "/etc/ray/redis"
"""Where a container finds what it shows to Redis, and the authority of Redis' certificates."""

VOLUME = "ray-redis"

USER = 65532
"""Number of the user that the gateway runs as, where the cluster does not leave that to images. Owns no file."""

_START_SECONDS = 600
"""So long the gateway may be without a master before it is started again. The head waits for it, as it would for Redis;
a RayCluster's readyTimeout says earlier what is wrong."""


def sidecar(
    settings: GatewaySettings, connection: RedisConnection, namespace: str, user: int | None, pull_policy: str
) -> Body:
    """The init container, for the head of a RayCluster in the tenant's `namespace`.

    `user`: number of the user that it runs as; None: the image's own.
    """
    amounts = settings.resources.model_dump()
    return {
        "name": NAME,
        "image": settings.image,
        "imagePullPolicy": pull_policy,
        "restartPolicy": "Always",
        "env": [*_of_redis(connection), *_of_itself(settings, connection, namespace)],
        "ports": [{"name": "redis-gateway", "containerPort": METRICS_PORT}],
        # More than once a second would not let the head start earlier: the gateway asks the Sentinels no more often.
        "startupProbe": {**_get("/readyz"), "periodSeconds": 1, "failureThreshold": _START_SECONDS},
        # No readiness probe: a head that is not ready loses its place behind its Service, with a failover of Redis.
        "livenessProbe": {**_get("/livez"), "periodSeconds": 10, "failureThreshold": 3},
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
            **({} if user is None else {"runAsUser": user}),
        },
        # What is wrong with its environment is one line on stderr, and then in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [MOUNT],
    }


def volume(connection: RedisConnection, *keys: str) -> Body:
    """The volume with those keys of the tenant's Secret. The kubelet brings it up to date."""
    items = [{"key": key, "path": key} for key in keys]
    return {"name": VOLUME, "secret": {"secretName": connection.secret, "items": items}}


def volume_keys(connection: RedisConnection) -> tuple[str, ...]:
    """The keys that the gateway reads as files."""
    return (connection.passwords_key, *([CA_KEY] if connection.tls else []))


MOUNT: Body = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}


def _of_redis(connection: RedisConnection) -> list[Body]:
    """Where Redis is, and who the gateway is to it and to its Sentinels."""
    nodes, passwords = ",".join(connection.nodes), f"{FOLDER}/{connection.passwords_key}"
    sentinel = connection.master_name is not None
    place = {"SENTINELS": nodes, "MASTER_NAME": str(connection.master_name)} if sentinel else {"REDIS": nodes}
    # Ray says the same to the gateway: it has no way to say anything else to the Job that cleans up.
    servers = ("REDIS", "SENTINEL", "CLIENT") if sentinel else ("REDIS", "CLIENT")
    user = {"secretKeyRef": {"name": connection.secret, "key": USERNAME_KEY}}
    return [
        *(_variable(name, value) for name, value in place.items()),
        *({"name": f"REDIS_GATEWAY_{each}_USERNAME", "valueFrom": user} for each in servers),
        *(_variable(f"{each}_PASSWORD_FILE", passwords) for each in servers),
        *([_variable("TLS_CA_FILE", f"{FOLDER}/{CA_KEY}")] if connection.tls else []),
    ]


def _of_itself(settings: GatewaySettings, connection: RedisConnection, namespace: str) -> list[Body]:
    replicas = min(1, connection.replicas) if settings.wait_replicas is None else settings.wait_replicas
    said = {
        "LISTEN": f"127.0.0.1:{PORT}",
        "HTTP_LISTEN": f"0.0.0.0:{METRICS_PORT}",
        # The tenant's user of Redis may write no other keys.
        "JOURNAL_PREFIX": f"{NAME}:{namespace}.",
        "WAIT_REPLICAS": str(replicas),
        "UNREPLICATED": settings.unreplicated,
        "HOLD_SECONDS": str(seconds(settings.hold_timeout)),
    }
    return [_variable(name, value) for name, value in said.items()]


def _variable(name: str, value: str) -> Body:
    return {"name": f"REDIS_GATEWAY_{name}", "value": value}


def _get(path: str) -> Body:
    return {"httpGet": {"path": path, "port": METRICS_PORT}, "timeoutSeconds": 5}
