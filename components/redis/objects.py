"""The objects of a Redis other than its Secrets, and its backups. Pure functions."""

from collections.abc import Iterator, Sequence

from components.objects import Object
from components.operator.settings import ComputeResources
from components.redis.connection import BACKUP, LABELS, NAME, RESTORE, names_of_nodes
from components.redis.manifests import (
    Body,
    claim,
    disruption_budget,
    requested_certificate,
    scripts_config_map,
    services,
    stateful_set,
)
from components.redis.pods import (
    RESTRICTED,
    amounts,
    environment,
    mounts,
    pod_security,
    pod_volumes,
    scheduling,
    script,
)
from components.redis.settings import RedisBackupSettings, RedisSettings, resources


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
        scripts_config_map(),
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
    yield Object(NODES, nodes, after=tuple(each.name for each in made))


NODES = "nodes"
"""Name of the object that is the StatefulSet of its nodes."""


def _name(body: Body) -> str:
    return f"{body['kind'].lower()}{body['metadata']['name'].removeprefix(NAME)}"


def _certificate(settings: RedisSettings, namespace: str) -> list[Body]:
    """The Certificate of cert-manager, if the settings name an issuer."""
    if settings.tls is None or settings.tls.issuer is None:
        return []
    names = names_of_nodes(namespace, settings.nodes, settings.cluster_domain)
    return [requested_certificate(settings.tls.issuer, names)]


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
        "resources": amounts(given),
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
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "spec": {
            "schedule": backup.schedule,
            "suspend": does == "restore",
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"metadata": {"labels": labels}, "spec": job},
        },
    }
