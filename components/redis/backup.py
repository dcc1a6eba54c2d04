"""Backup and restore of Redis' data: CronJobs and their volume. Pure functions."""

from typing import Any

from ..operator.settings import ComputeResources
from .manifests import claim
from .names import BACKUP, LABELS, RESTORE
from .pods import RESTRICTED, amounts, environment, mounts, pod_security, pod_volumes, scheduling, script
from .settings import RedisBackupSettings, RedisSettings
from .sizes import resources

Body = dict[str, Any]

_FOLDER = "/backup"

_AMOUNTS = ComputeResources(cpu="50m", memory="64Mi")

_LONGEST_SECONDS = 1800
"""Timeout of a backup or restore."""


def backup_objects(settings: RedisSettings, backup: RedisBackupSettings, namespace: str, clusters: int) -> list[Body]:
    """The volume for backups, the CronJob that writes them, and a suspended CronJob that restores the newest one.
    `namespace` as it is in the nodes' names."""
    restoring = resources(settings, clusters).model_copy(update={"cpu": _AMOUNTS.cpu})
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": BACKUP, "labels": dict(LABELS), "annotations": {"pulumi.com/skipAwait": "true"}},
            "spec": claim(backup.storage),
        },
        _cron_job(BACKUP, "backup", settings, backup, _env(settings, namespace, KEEP=backup.keep), _AMOUNTS),
        _cron_job(RESTORE, "restore", settings, backup, _env(settings, namespace, RESTORE=""), restoring),
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
        "command": script(does),
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
