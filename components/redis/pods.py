"""The pods of Redis: what runs in them, with which rights. Pure functions."""

import hashlib
from collections.abc import Mapping
from importlib import resources as package
from typing import Any

from ..operator.settings import ComputeResources
from .names import (
    CERTIFICATE_SECRET,
    EXPORTER_PORT,
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
from .settings import RedisSettings
from .sizes import SENTINEL, max_memory, output_buffer, resources
from .users import EXPORTER_USER

Body = dict[str, Any]

USER = 999
"""User and group `redis` of Redis' and Valkey's images (redis/docker-library-redis, Dockerfile)."""

DOWN_AFTER = 1500
"""Milliseconds after which a Sentinel takes a silent master for lost; it asks every second. A failover takes as much
longer as this is: with 5000, three seconds and a half."""

DOWN_AFTER_AT_START = 60_000
"""The same until a Sentinel has first seen the master: when all start again, another would be made the master that was
up sooner, and what only the last master has would be lost."""

FAILOVER_TIMEOUT = 10_000
"""Milliseconds. A Sentinel tries a failover again after twice this time."""

STOP_SECONDS = 40
"""So long a pod may take to end: 15 s for another node to become the master, 10 s for replicas to have everything
(Redis' shutdown-timeout), and time to write."""

_USERS = "/etc/redis/users"
_SCRIPTS = "/etc/redis/scripts"
_TLS = "/etc/redis/tls"
_RUN = "/run/redis"
_HOSTS = "hosts"
_NAMES = "/run/names"
_DATA = "/data"

RESTRICTED: Body = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""The security context of a container. It writes only into its volumes."""


def scripts() -> dict[str, str]:
    """The scripts of the containers, by file name."""
    folder = package.files(__package__).joinpath("scripts")
    return {file.name: file.read_text() for file in sorted(folder.iterdir(), key=lambda each: each.name)}


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
        # One answer that is lost costs five seconds where nothing is said.
        "dnsConfig": {"options": [{"name": "timeout", "value": "1"}, {"name": "attempts", "value": "3"}]},
        "securityContext": pod_security(),
        "containers": containers,
        "volumes": [
            *pod_volumes(settings),
            # Configurations hold the nodes' password: they stay in memory.
            *(
                {"name": f"{each}-run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
                for each in _servers(settings)
            ),
        ],
        **scheduling(settings, priority_class),
    }
    if settings.mode == "managed":
        spec["initContainers"] = [_names(settings, namespace)]
        spec["volumes"].append({"name": "names", "emptyDir": {"sizeLimit": "1Mi"}})
        spec |= _apart(settings.spread)
    # A script that changes is for pods that start: new ones are made. Users change without.
    digest = hashlib.sha256("".join(scripts().values()).encode()).hexdigest()
    return {
        "metadata": {"labels": {**LABELS, **SELECTOR}, "annotations": {"ray-platform/scripts": digest}},
        "spec": spec,
    }


def pod_security() -> Body:
    """The security context of a pod, as Pod Security `restricted` asks for it."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def scheduling(settings: RedisSettings, priority_class: str | None) -> Body:
    """Where the pods may run, and what goes before them."""
    said: Body = {
        "priorityClassName": priority_class,
        "nodeSelector": dict(settings.node_selector),
        "tolerations": [each.model_dump(by_alias=True, exclude_none=True) for each in settings.tolerations],
        "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
    }
    return {key: value for key, value in said.items() if value}


def script(name: str, *arguments: str) -> list[str]:
    """The command that runs one of the scripts."""
    return ["sh", f"{_SCRIPTS}/{name}.sh", *arguments]


def environment(settings: RedisSettings, namespace: str, **further: str | int) -> list[Body]:
    """What the scripts are told (scripts/common.sh)."""
    said = {
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
        *({"name": key, "value": value} for key, value in said.items()),
    ]


def amounts(given: ComputeResources) -> Body:
    """Memory that is never taken back, and CPU without a limit: a throttled node looks dead to its Sentinels."""
    return {"requests": {"cpu": given.cpu, "memory": given.memory}, "limits": {"memory": given.memory}}


def mounts(settings: RedisSettings) -> list[Body]:
    """What every container that speaks to the nodes has."""
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


def _servers(settings: RedisSettings) -> tuple[str, ...]:
    return ("redis", "sentinel") if settings.mode == "managed" else ("redis",)


def _server(settings: RedisSettings, name: str, port: int, env: list[Body], given: ComputeResources) -> Body:
    return {
        "name": name,
        "image": settings.image,
        "command": script(name),
        "env": env,
        "ports": [{"name": name, "containerPort": port}],
        "resources": amounts(given),
        "securityContext": dict(RESTRICTED),
        "volumeMounts": [
            {"name": "data", "mountPath": _DATA},
            {"name": f"{name}-run", "mountPath": _RUN},
            *mounts(settings),
            *([{"name": "names", "mountPath": "/etc/hosts", "subPath": _HOSTS}] if settings.mode == "managed" else []),
        ],
        # Ten minutes: a node waits for a majority of Sentinels, and an empty one for another master.
        "startupProbe": _probe("alive", name, period=2, failures=300),
        "livenessProbe": _probe("alive", name, period=20, failures=6),
        "readinessProbe": _probe("ready", name, period=5, failures=2),
    }


def _probe(question: str, server: str, period: int, failures: int) -> Body:
    command = script("probe", question, server)
    return {"exec": {"command": command}, "periodSeconds": period, "timeoutSeconds": 10, "failureThreshold": failures}


def _names(settings: RedisSettings, namespace: str) -> Body:
    """Makes the file that the servers have as /etc/hosts. The Sentinel's container keeps it true."""
    return {
        "name": "names",
        "image": settings.image,
        "command": script("names", "once"),
        "env": environment(settings, namespace, HOSTS=f"{_NAMES}/{_HOSTS}"),
        "resources": amounts(SENTINEL),
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
    said: Mapping[str, str] = {
        "REDIS_ADDR": f"{'rediss' if settings.tls else 'redis'}://localhost:{REDIS_PORT}",
        "REDIS_USER": EXPORTER_USER,
        # CONFIG GET shows the nodes' password.
        "REDIS_EXPORTER_CONFIG_COMMAND": "-",
        **({"REDIS_EXPORTER_TLS_CA_CERT_FILE": f"{_TLS}/ca.crt"} if settings.tls else {}),
    }
    password = {"secretKeyRef": {"name": USERS_SECRET, "key": "exporter-password"}}
    return {
        "name": "exporter",
        "image": settings.exporter.image,
        "env": [
            *({"name": key, "value": value} for key, value in said.items()),
            {"name": "REDIS_PASSWORD", "valueFrom": password},
        ],
        "ports": [{"name": "metrics", "containerPort": EXPORTER_PORT}],
        "resources": amounts(settings.exporter.resources),
        "securityContext": dict(RESTRICTED),
        "volumeMounts": [{"name": "tls", "mountPath": _TLS, "readOnly": True}] if settings.tls else [],
        "readinessProbe": {"httpGet": {"path": "/health", "port": "metrics"}, "periodSeconds": 10},
    }


def _apart(spread: str) -> Body:
    """Nodes of Redis on nodes and in zones of their own, as far as there are so many, or else not at all."""
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
