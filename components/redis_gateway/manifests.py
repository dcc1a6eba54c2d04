"""The gateway as a native sidecar: an init container that keeps running; and whether a cluster's Kubernetes has these
(1.29).

KubeRay's clean-up Job is made from the head's pod template with its init containers
(ray-operator/controllers/ray/raycluster_controller.go: buildRedisCleanupJob), so the Job also has the gateway.
"""

from collections.abc import Mapping
from typing import Any

from components import payloads
from components.bodies import restricted_sidecar
from components.cluster import Cluster
from components.redis.connection import CA_KEY, USERNAME_KEY, RedisConnection
from components.redis_gateway.settings import GatewaySettings
from core.body import Body
from core.types import seconds

NAME = "redis-gateway"
"""Name of the container, and prefix of the gateway's own keys."""

PORT = 6399
"""Port of the gateway for Ray, on the loopback interface of the pod. Not 6379, which is the head's GCS."""

METRICS_PORT = 9399
"""Port of `/metrics`, `/readyz` and `/livez`."""

LABELS = {"app.kubernetes.io/part-of": "ray-platform", "app.kubernetes.io/component": NAME}

ADDRESS = f"redis://127.0.0.1:{PORT}"

FIRST_KUBERNETES = (1, 29)
"""Native sidecars are on by default since this version (kubernetes.io, Sidecar Containers)."""

CONFIG_MAP = "ray-redis-gateway"
"""Name of the ConfigMap with the gateway's program, in the namespace of each tenant that uses Redis."""

_PACKAGE, _PLACE = "redis_gateway", "/opt/ray-platform"
"""The Python package of the program, and the folder in which it is mounted."""

FOLDER = "/etc/ray/redis"
"""Folder with the Redis credentials and the certificate authority of Redis."""

VOLUME = "ray-redis"

_START_SECONDS = 600
"""Seconds without a master after which the gateway is restarted. The head waits for the gateway as it would for Redis.
A RayCluster's readyTimeout reports the reason earlier."""


def has_gateway(spec: Mapping[str, Any]) -> bool:
    """Whether the head of a RayCluster's spec has the gateway beside it."""
    initial = spec["headGroupSpec"]["template"]["spec"].get("initContainers") or ()
    return any(each.get("name") == NAME for each in initial)


def config_map() -> Body:
    """The program. Without it no head with a gateway starts."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "labels": dict(LABELS)},
        "data": payloads.files(_PACKAGE),
    }


def sidecar(
    settings: GatewaySettings,
    connection: RedisConnection,
    namespace: str,
    image: str,
    user: int | None,
    pull_policy: str,
) -> Body:
    """The init container, for the head of a RayCluster in the tenant's `namespace`.

    `image`: Ray's. `user`: that of Ray's container; None: that of the image.
    """
    amounts = settings.resources.model_dump()
    return {
        "name": NAME,
        "image": image,
        "imagePullPolicy": pull_policy,
        "command": ["python", "-m", _PACKAGE],
        "workingDir": _PLACE,
        "restartPolicy": "Always",
        "env": [*_of_redis(connection), *_of_itself(settings, connection, namespace)],
        "ports": [{"name": "redis-gateway", "containerPort": METRICS_PORT}],
        # A shorter period does not start the head earlier: the gateway asks the Sentinels once a second.
        "startupProbe": {**_get("/readyz"), "periodSeconds": 1, "failureThreshold": _START_SECONDS},
        # No readiness probe: with one, a failover of Redis would remove the head from its Service.
        "livenessProbe": {**_get("/livez"), "periodSeconds": 10, "failureThreshold": 3},
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "securityContext": restricted_sidecar(user),
        # An error in its environment is one line on stderr, which then is in the pod's status.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [MOUNT, {"name": NAME, "mountPath": f"{_PLACE}/{_PACKAGE}", "readOnly": True}],
    }


def volumes(connection: RedisConnection) -> tuple[Body, ...]:
    """The volumes of the head's pod for the gateway: the credentials, and the program."""
    return volume(connection, *volume_keys(connection)), {"name": NAME, "configMap": {"name": CONFIG_MAP}}


def volume(connection: RedisConnection, *keys: str) -> Body:
    """The volume with those keys of the tenant's Secret. The kubelet updates it."""
    items = [{"key": key, "path": key} for key in keys]
    return {"name": VOLUME, "secret": {"secretName": connection.secret, "items": items}}


def volume_keys(connection: RedisConnection) -> tuple[str, ...]:
    """The keys that the gateway reads as files."""
    passwords = (connection.passwords_key, connection.gateway_passwords_key)
    return (*dict.fromkeys(passwords), *([CA_KEY] if connection.tls else []))


MOUNT: Body = {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}


def _of_redis(connection: RedisConnection) -> list[Body]:
    """Variables with the address of Redis, and the credentials for Redis and its Sentinels."""
    nodes, passwords = ",".join(connection.nodes), f"{FOLDER}/{connection.passwords_key}"
    of_clients = f"{FOLDER}/{connection.gateway_passwords_key}"
    sentinel = connection.master_name is not None
    place = {"SENTINELS": nodes, "MASTER_NAME": str(connection.master_name)} if sentinel else {"REDIS": nodes}
    servers = ("REDIS", "SENTINEL") if sentinel else ("REDIS",)
    user = {"secretKeyRef": {"name": connection.secret, "key": USERNAME_KEY}}
    return [
        *(_variable(name, value) for name, value in place.items()),
        *({"name": f"REDIS_GATEWAY_{each}_USERNAME", "valueFrom": user} for each in (*servers, "CLIENT")),
        *(_variable(f"{each}_PASSWORD_FILE", passwords) for each in servers),
        # Jobs can read the head's environment. What they find there is of no use to Redis itself.
        _variable("CLIENT_PASSWORD_FILE", of_clients),
        *([_variable("TLS_CA_FILE", f"{FOLDER}/{CA_KEY}")] if connection.tls else []),
    ]


def _of_itself(settings: GatewaySettings, connection: RedisConnection, namespace: str) -> list[Body]:
    replicas = min(1, connection.replicas) if settings.wait_replicas is None else settings.wait_replicas
    variables = {
        "LISTEN": f"127.0.0.1:{PORT}",
        "HTTP_LISTEN": f"0.0.0.0:{METRICS_PORT}",
        # The tenant's Redis user can write no other keys.
        "JOURNAL_PREFIX": f"{NAME}:{namespace}.",
        "WAIT_REPLICAS": str(replicas),
        "UNREPLICATED": settings.unreplicated,
        "HOLD_SECONDS": str(seconds(settings.hold_timeout)),
        "MAX_COMMAND_BYTES": str(settings.largest_value),
    }
    return [_variable(name, value) for name, value in variables.items()]


def _variable(name: str, value: str) -> Body:
    return {"name": f"REDIS_GATEWAY_{name}", "value": value}


def _get(path: str) -> Body:
    return {"httpGet": {"path": path, "port": METRICS_PORT}, "timeoutSeconds": 5}


class UnsupportedKubernetesError(Exception):
    """The cluster's Kubernetes is too old for the gateway; the message has what to do."""


def check_kubernetes(cluster: Cluster) -> None:
    """Checks the API server's version against the minimum for the gateway.

    If the version cannot be read or parsed, the check passes: the next apply fails if Kubernetes is too old.

    Raises UnsupportedKubernetesError.
    """
    version = cluster.kubernetes
    if version and version < FIRST_KUBERNETES:
        raise UnsupportedKubernetesError(
            f"the Redis gateway is a native sidecar, which needs Kubernetes {_dotted(FIRST_KUBERNETES)} or later, and "
            f"this is {_dotted(version)}: raise it, or set redis.gateway: false"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
