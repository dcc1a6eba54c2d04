"""Renders the settings of Redis into Kubernetes objects, except its pods and NetworkPolicies; its backups. Pure
functions."""

from collections.abc import Iterator, Sequence
from typing import Any

from components.bodies import restricted_namespace
from components.objects import Object
from components.operator.settings import ComputeResources
from components.redis.connection import (
    BACKUP,
    CA_KEY,
    CERTIFICATE_SECRET,
    EXPORTER_PORT,
    EXPORTER_USER,
    GATEWAY_PASSWORD_KEY,
    GATEWAY_PASSWORDS_KEY,
    LABELS,
    NAME,
    NODES_USER,
    PASSWORD_KEY,
    PASSWORDS_KEY,
    REDIS_PORT,
    RESTORE,
    SCRIPTS,
    SELECTOR,
    SENTINEL_PORT,
    SENTINELS,
    USERNAME_KEY,
    Passwords,
    gateway_password,
    names_of_nodes,
    newest_first,
    redis_acl,
    sentinel_acl,
)
from components.redis.pods import (
    RESTRICTED,
    environment,
    mounts,
    pod_security,
    pod_volumes,
    scheduling,
    script,
    scripts,
    template,
)
from components.redis.settings import RedisBackupSettings, RedisSettings, RedisStorageSettings, resources
from core.body import Body

USERS_KEYS = {NODES_USER: "passwords", EXPORTER_USER: "exporter-password"}
"""Keys of the users' Secret with passwords in plain text."""


def namespace(name: str) -> Body:
    """The Namespace that is created for it, with the strictest Pod Security level."""
    return restricted_namespace(name, LABELS)


def users_files(passwords: Passwords) -> dict[str, str]:
    """The files of the nodes: ACLs, the passwords of their own user, and the exporter's password."""
    exporter = passwords.get(EXPORTER_USER)
    return {
        "redis.acl": redis_acl(passwords),
        "sentinel.acl": sentinel_acl(passwords),
        USERS_KEYS[NODES_USER]: newest_first(passwords[NODES_USER]),
        **({USERS_KEYS[EXPORTER_USER]: exporter[-1]} if exporter else {}),
    }


def tenant_secret(username: str, passwords: Sequence[str], authority: str | None = None) -> dict[str, str]:
    """The data of a tenant's Secret. `passwords`: all accepted ones, the oldest first; `authority`: PEM."""
    for_gateway = [gateway_password(password) for password in passwords]
    return {
        USERNAME_KEY: username,
        PASSWORD_KEY: passwords[-1],
        PASSWORDS_KEY: newest_first(passwords),
        GATEWAY_PASSWORD_KEY: for_gateway[-1],
        GATEWAY_PASSWORDS_KEY: newest_first(for_gateway),
        **({CA_KEY: authority} if authority else {}),
    }


def secret(name: str, texts: Any) -> Body:
    """A Secret of that name: SECRET with the result of `tenant_secret`, USERS_SECRET with that of `users_files`, or
    CERTIFICATE_SECRET. `texts` may be an Output."""
    return _object("v1", "Secret", name, stringData=texts)


def _object(api_version: str, kind: str, name: str, **parts: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": dict(LABELS)}, **parts}


def services(settings: RedisSettings) -> list[Body]:
    """The headless Service for the DNS names of the nodes, and the Service of all Sentinels."""
    sentinel = {"name": "sentinel", "port": SENTINEL_PORT, "targetPort": "sentinel"}
    ports = [
        {"name": "redis", "port": REDIS_PORT, "targetPort": "redis"},
        *([sentinel] if settings.mode == "managed" else []),
        *([{"name": "metrics", "port": EXPORTER_PORT, "targetPort": "metrics"}] if settings.exporter else []),
    ]
    # Nodes must find each other before they are ready.
    found = {"selector": dict(SELECTOR), "publishNotReadyAddresses": True}
    nodes = {"clusterIP": "None", **found, "ports": ports}
    # A Sentinel also answers if its node is down or behind.
    sentinels = {**found, "ports": [sentinel]}
    return [_service(NAME, nodes), *([_service(SENTINELS, sentinels)] if settings.mode == "managed" else [])]


def _service(name: str, spec: Body) -> Body:
    # Pulumi would wait for endpoints, which the StatefulSet provides later.
    metadata = {"name": name, "labels": dict(LABELS), "annotations": {"pulumi.com/skipAwait": "true"}}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def stateful_set(settings: RedisSettings, namespace: str, clusters: int, priority_class: str | None = None) -> Body:
    """The StatefulSet. `namespace` as it is in the nodes' names; `clusters`: how many RayClusters use it."""
    spec = {
        "serviceName": NAME,
        "replicas": settings.nodes,
        # All at once: after a loss of all nodes, none is ready before a majority runs.
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": dict(SELECTOR)},
        "template": template(settings, namespace, clusters, priority_class),
        "volumeClaimTemplates": [
            {"metadata": {"name": "data", "labels": dict(LABELS)}, "spec": claim(settings.storage)}
        ],
        # A replaced StatefulSet keeps its data. They are deleted with the namespace.
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }
    return _object("apps/v1", "StatefulSet", NAME, spec=spec)


def claim(storage: RedisStorageSettings) -> Body:
    """The spec of a PersistentVolumeClaim."""
    named = {"storageClassName": storage.storage_class_name} if storage.storage_class_name else {}
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage.size}}, **named}


def disruption_budget() -> Body:
    """At most one node is drained at a time: two would be the majority."""
    spec = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": dict(SELECTOR)},
        # A node that is not ready may be evicted: no data depend on it.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return _object("policy/v1", "PodDisruptionBudget", NAME, spec=spec)


def redis_objects(
    settings: RedisSettings,
    namespace: str,
    clusters: int,
    priority_class: str | None = None,
    policies: Sequence[Body] = (),
) -> Iterator[Object]:
    """All objects but the Secrets, for one namespace; places are in the settings.

    `namespace` as it is in the nodes' names; `clusters`: how many RayClusters use it; `policies`: its NetworkPolicies.
    """
    backups = backup_objects(settings, settings.backup, namespace, clusters) if settings.backup else []
    bodies = [
        _object("v1", "ConfigMap", SCRIPTS, data=scripts()),
        *services(settings),
        *([disruption_budget()] if settings.mode == "managed" else []),
        *_certificate(settings, namespace),
    ]
    made = [
        *(Object(f"network-{body['metadata']['name']}", body) for body in policies),
        *(Object(_name(body), body) for body in bodies),
        *(Object(_name(body), body, ("backup",)) for body in backups),
    ]
    yield from made
    nodes = stateful_set(settings, namespace, clusters, priority_class)
    yield Object(STATEFUL_SET, nodes, after=tuple(each.name for each in made))


STATEFUL_SET = "nodes"
"""Name of the object that is the StatefulSet of its nodes."""


def _name(body: Body) -> str:
    return f"{body['kind'].lower()}{body['metadata']['name'].removeprefix(NAME)}"


def _certificate(settings: RedisSettings, namespace: str) -> list[Body]:
    """The Certificate with which cert-manager creates the same Secret, if the settings name an issuer."""
    if settings.tls is None or settings.tls.issuer is None:
        return []
    spec = {
        "secretName": CERTIFICATE_SECRET,
        "dnsNames": list(names_of_nodes(namespace, settings.nodes, settings.cluster_domain)),
        # Nodes are also clients of each other.
        "usages": ["server auth", "client auth"],
        "privateKey": {"algorithm": "ECDSA", "size": 256},
        "issuerRef": {"group": "cert-manager.io", **settings.tls.issuer.model_dump()},
    }
    return [_object("cert-manager.io/v1", "Certificate", CERTIFICATE_SECRET, spec=spec)]


_FOLDER = "/backup"

_UNFINISHED = 'rm -f "$BACKUP"/*.part; exec "$@"'
"""Deletes what backups that failed or took too long have left: it would fill the volume, and no later one would
succeed. Not in the script, because a changed script replaces the pods of Redis."""

_CPU = "50m"

_LONGEST_SECONDS = 1800
"""Timeout of a backup or restore."""


def backup_objects(settings: RedisSettings, backup: RedisBackupSettings, namespace: str, clusters: int) -> list[Body]:
    """The volume for backups, the CronJob that writes them, and a suspended CronJob that restores the newest one.
    `namespace` as it is in the nodes' names.

    Both need the memory of a node: redis-check-rdb, which checks a backup, holds its largest hash, and a restore holds
    all data.
    """
    given = resources(settings, clusters).model_copy(update={"cpu": _CPU})
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": BACKUP, "labels": dict(LABELS), "annotations": {"pulumi.com/skipAwait": "true"}},
            "spec": claim(backup.storage),
        },
        _cron_job(BACKUP, "backup", settings, backup, _env(settings, namespace, KEEP=backup.keep), given),
        _cron_job(RESTORE, "restore", settings, backup, _env(settings, namespace, RESTORE=""), given),
    ]


def _env(settings: RedisSettings, namespace: str, **further: str | int) -> list[Body]:
    return environment(settings, namespace, BACKUP=_FOLDER, **further)


def _cron_job(
    name: str,
    does: str,
    settings: RedisSettings,
    backup: RedisBackupSettings,
    env: list[Body],
    given: ComputeResources,
) -> Body:
    container = {
        "name": does,
        "image": settings.image,
        "command": script(does) if does == "restore" else ["sh", "-c", _UNFINISHED, "sh", *script(does)],
        "env": env,
        "resources": given.without_cpu_limit,
        "securityContext": dict(RESTRICTED),
        "volumeMounts": [
            {"name": "backup", "mountPath": _FOLDER},
            {"name": f"{does}-run", "mountPath": "/run/redis"},
            *mounts(settings),
        ],
    }
    pod = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "securityContext": pod_security(),
        "containers": [container],
        "volumes": [
            {"name": "backup", "persistentVolumeClaim": {"claimName": BACKUP}},
            # The restored data are read from here. They need no more space than Redis' own storage.
            {"name": f"{does}-run", "emptyDir": {"sizeLimit": settings.storage.size}},
            *pod_volumes(settings),
        ],
        **scheduling(settings, None),
    }
    labels = {**LABELS, "app.kubernetes.io/component": does}
    job = {
        "activeDeadlineSeconds": _LONGEST_SECONDS,
        "backoffLimit": 1,
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    spec = {
        "schedule": backup.schedule,
        "suspend": does == "restore",
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {"metadata": {"labels": labels}, "spec": job},
    }
    return _object("batch/v1", "CronJob", name, spec=spec)
