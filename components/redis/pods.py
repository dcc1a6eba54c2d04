"""The pods of Redis: containers, volumes, security contexts. Pure functions."""

import hashlib
from collections.abc import Mapping

from components import payloads
from components.operator.settings import ComputeResources
from components.redis.connection import (
    CERTIFICATE_SECRET,
    EXPORTER_PORT,
    EXPORTER_USER,
    LABELS,
    MASTER_NAME,
    REDIS_PORT,
    SCRIPTS,
    SELECTOR,
    SENTINEL_PORT,
    USERS_SECRET,
    host,
    hosts,
)
from components.redis.settings import SENTINEL, RedisSettings, client_memory, max_memory, output_buffer, resources
from core.body import Body
from core.pods import RESTRICTED_CONTAINER, RESTRICTED_POD

USER = 999
"""User and group `redis` of Redis' and Valkey's images (redis/docker-library-redis, Dockerfile)."""

DOWN_AFTER = 1500
"""Milliseconds after which a Sentinel considers a silent master lost; it sends a ping every second. A larger value
delays a failover by the same time: 5000 by three and a half seconds."""

DOWN_AFTER_AT_START = 60_000
"""The same, until a Sentinel has first seen the master. Otherwise, when all nodes restart, a replica that starts sooner
would be promoted, and writes that only the last master has would be lost."""

FAILOVER_TIMEOUT = 10_000
"""Milliseconds. A Sentinel retries a failover after twice this time."""

STOP_SECONDS = 40
"""Grace period of a pod: 15 s for the promotion of another node, 10 s for replicas to receive all writes (Redis'
shutdown-timeout), and time to save."""

_USERS = "/etc/redis/users"
_SCRIPTS = "/etc/redis/scripts"
_TLS = "/etc/redis/tls"
_RUN = "/run/redis"
_HOSTS = "hosts"
_NAMES = "/run/names"
_DATA = "/data"

RESTRICTED: Body = {**RESTRICTED_CONTAINER, "readOnlyRootFilesystem": True}
"""The security context of a container. Only its volumes are writable."""


def scripts() -> dict[str, str]:
    """The scripts of the containers, by file name."""
    return payloads.files("redis")


def template(settings: RedisSettings, namespace: str, clusters: int, priority_class: str | None) -> Body:
    """The pod template. `namespace` as it is in the nodes' names; `clusters`: how many RayClusters use it."""
    containers = [_redis(settings, namespace, clusters)]
    if settings.mode == "managed":
        containers.append(_sentinel(settings, namespace))
    if settings.exporter:
        containers.append(_exporter(settings))
    spec: Body = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": STOP_SECONDS,
        # With the defaults one lost DNS answer costs five seconds.
        "dnsConfig": {"options": [{"name": "timeout", "value": "1"}, {"name": "attempts", "value": "3"}]},
        "securityContext": pod_security(),
        "containers": containers,
        "volumes": [
            *pod_volumes(settings),
            # Configuration files contain the nodes' password, so they stay in memory.
            *(
                {"name": f"{each}-run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
                for each in (("redis", "sentinel") if settings.mode == "managed" else ("redis",))
            ),
        ],
        **scheduling(settings, priority_class),
    }
    if settings.mode == "managed":
        spec["initContainers"] = [_names(settings, namespace)]
        spec["volumes"].append({"name": "names", "emptyDir": {"sizeLimit": "1Mi"}})
        spec |= _spread(settings.spread)
    # A changed script replaces the pods. Changed users do not.
    digest = hashlib.sha256("".join(scripts().values()).encode()).hexdigest()
    return {
        "metadata": {"labels": {**LABELS, **SELECTOR}, "annotations": {"ray-platform/scripts": digest}},
        "spec": spec,
    }


def pod_security() -> Body:
    """The security context of a pod for Pod Security `restricted`."""
    return {
        **RESTRICTED_POD,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
    }


def scheduling(settings: RedisSettings, priority_class: str | None) -> Body:
    """Node selector, tolerations, priority and pull Secrets of the pods."""
    fields: Body = {
        "priorityClassName": priority_class,
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [each.model_dump(by_alias=True, exclude_none=True) for each in settings.tolerations],
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
    }
    return {key: value for key, value in fields.items() if value}


def script(name: str, *arguments: str) -> list[str]:
    return ["sh", f"{_SCRIPTS}/{name}.sh", *arguments]


def environment(settings: RedisSettings, namespace: str, **further: str | int) -> list[Body]:
    """The environment of the scripts (scripts/common.sh)."""
    variables = {
        "NODES": " ".join(hosts(namespace, settings.nodes, settings.cluster_domain)),
        "MASTER_NAME": MASTER_NAME if settings.mode == "managed" else "",
        "LISTEN": "",
        "USERS": _USERS,
        "DATA": _DATA,
        "RUN": _RUN,
        "TLS": _TLS if settings.tls else "",
        **{key: str(value) for key, value in further.items()},
    }
    return [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "ME", "value": host("$(POD_NAME)", namespace, settings.cluster_domain)},
        *({"name": key, "value": value} for key, value in variables.items()),
    ]


def mounts(settings: RedisSettings) -> list[Body]:
    """Mounts of every container that connects to the nodes."""
    return [
        {"name": "users", "mountPath": _USERS, "readOnly": True},
        {"name": "scripts", "mountPath": _SCRIPTS, "readOnly": True},
        *([{"name": "tls", "mountPath": _TLS, "readOnly": True}] if settings.tls else []),
    ]


def pod_volumes(settings: RedisSettings) -> list[Body]:
    """The volumes of `mounts`."""
    certificate = {"secretName": CERTIFICATE_SECRET, "defaultMode": 0o440}
    return [
        {"name": "users", "secret": {"secretName": USERS_SECRET, "defaultMode": 0o440}},
        {"name": "scripts", "configMap": {"name": SCRIPTS}},
        *([{"name": "tls", "secret": certificate}] if settings.tls else []),
    ]


def _server(settings: RedisSettings, name: str, port: int, env: list[Body], given: ComputeResources) -> Body:
    return {
        "name": name,
        "image": settings.image,
        "command": script(name),
        "env": env,
        "ports": [{"name": name, "containerPort": port}],
        "resources": given.without_cpu_limit,
        "securityContext": dict(RESTRICTED),
        "volumeMounts": [
            {"name": "data", "mountPath": _DATA},
            {"name": f"{name}-run", "mountPath": _RUN},
            *mounts(settings),
            *([{"name": "names", "mountPath": "/etc/hosts", "subPath": _HOSTS}] if settings.mode == "managed" else []),
        ],
        # Ten minutes: a node waits for a majority of Sentinels, and an empty node for another master.
        "startupProbe": _probe("alive", name, period=2, failures=300),
        "livenessProbe": _probe("alive", name, period=20, failures=6),
        "readinessProbe": _probe("ready", name, period=5, failures=2),
    }


def _probe(question: str, server: str, period: int, failures: int) -> Body:
    command = script("probe", question, server)
    return {"exec": {"command": command}, "periodSeconds": period, "timeoutSeconds": 10, "failureThreshold": failures}


def _names(settings: RedisSettings, namespace: str) -> Body:
    """Creates the /etc/hosts of the servers. The Sentinel's container keeps it current."""
    return {
        "name": "names",
        "image": settings.image,
        "command": script("names", "once"),
        "env": environment(settings, namespace, HOSTS=f"{_NAMES}/{_HOSTS}"),
        "resources": SENTINEL.without_cpu_limit,
        "securityContext": dict(RESTRICTED),
        "volumeMounts": [{"name": "names", "mountPath": _NAMES}, *mounts(settings)],
    }


def _redis(settings: RedisSettings, namespace: str, clusters: int) -> Body:
    given = resources(settings, clusters)
    env = environment(
        settings,
        namespace,
        FSYNC=settings.fsync,
        MAXMEMORY=max_memory(given.memory),
        OUTPUT_BUFFER=output_buffer(given.memory),
        CLIENTS=client_memory(given.memory),
        MIN_REPLICAS=1 if settings.mode == "managed" else 0,
    )
    return _server(settings, "redis", REDIS_PORT, env, given)


def _sentinel(settings: RedisSettings, namespace: str) -> Body:
    env = environment(
        settings,
        namespace,
        DOWN_AFTER=DOWN_AFTER,
        DOWN_AFTER_AT_START=DOWN_AFTER_AT_START,
        FAILOVER_TIMEOUT=FAILOVER_TIMEOUT,
        HOSTS="/etc/hosts",
    )
    return _server(settings, "sentinel", SENTINEL_PORT, env, SENTINEL)


def _exporter(settings: RedisSettings) -> Body:
    assert settings.exporter
    variables: Mapping[str, str] = {
        "REDIS_ADDR": f"{'rediss' if settings.tls else 'redis'}://localhost:{REDIS_PORT}",
        "REDIS_USER": EXPORTER_USER,
        # CONFIG GET would show the nodes' password.
        "REDIS_EXPORTER_CONFIG_COMMAND": "-",
        **({"REDIS_EXPORTER_TLS_CA_CERT_FILE": f"{_TLS}/ca.crt"} if settings.tls else {}),
    }
    password = {"secretKeyRef": {"name": USERS_SECRET, "key": "exporter-password"}}
    return {
        "name": "exporter",
        "image": settings.exporter.image,
        "env": [
            *({"name": key, "value": value} for key, value in variables.items()),
            {"name": "REDIS_PASSWORD", "valueFrom": password},
        ],
        "ports": [{"name": "metrics", "containerPort": EXPORTER_PORT}],
        "resources": settings.exporter.resources.without_cpu_limit,
        "securityContext": dict(RESTRICTED),
        "volumeMounts": [{"name": "tls", "mountPath": _TLS, "readOnly": True}] if settings.tls else [],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "metrics"}, "periodSeconds": 10},
    }


def _spread(spread: str) -> Body:
    """Spreads Redis over nodes and zones: as far as possible, or with `required` strictly over nodes."""
    term = {"labelSelector": {"matchLabels": SELECTOR}, "topologyKey": "kubernetes.io/hostname"}
    affinity = (
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if spread == "required"
        else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}
    )
    over_zones = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": SELECTOR},
    }
    return {"affinity": {"podAntiAffinity": affinity}, "topologySpreadConstraints": [over_zones]}
