"""Renders the schedule of a job template: a CronJob whose pod starts a run, with a user's rights. Pure functions."""

from pathlib import Path
from typing import Any

from components.access.manifests import PREFIX, account, role, role_binding, service_account
from components.access.personas import schedule_of
from components.job_template.manifests import AUTHOR_ANNOTATION, LETTERS, TEMPLATE_LABEL
from components.job_template.settings import CronSettings, JobTemplateSettings
from components.ray_cluster.pods import Body, PodIdentity, container, of_a_program, template
from components.ray_cluster.settings import RayClusterSettings

SCHEDULE_LABEL = "ray-platform/job-schedule"
"""Label of the pods that start runs: the template's name."""

_PROGRAM = Path(__file__).with_name("start_run.py")

_AMOUNTS = {"cpu": "100m", "memory": "128Mi"}
"""For Python with its standard library, which takes about 30Mi."""

_LONGEST_SECONDS = 300

_TRIES = 3
"""How often the pod is tried again; the name of a run depends on its time alone, so it is created once."""


def account_name(template_name: str) -> str:
    """Name of the ServiceAccount that starts the runs of a template. KubeRay's accounts have the names of RayClusters,
    without dots."""
    return f"{template_name}.schedule"


def schedule_objects(
    settings: JobTemplateSettings, cron: CronSettings, namespace: str, place: RayClusterSettings
) -> dict[str, Body]:
    """The CronJob and its account, by part. `place`: the RayCluster of the template, whose image the pod has."""
    name, who = settings.name, account_name(settings.name)
    whole = f"{PREFIX}job-schedule:{name}"
    return {
        "schedule-account": service_account(who),
        "schedule-role": role(whole, schedule_of(name)),
        "schedule-role-binding": role_binding(whole, whole, [account(who, namespace)]),
        "schedule": _cron_job(settings, cron, namespace, place),
    }


def _cron_job(settings: JobTemplateSettings, cron: CronSettings, namespace: str, place: RayClusterSettings) -> Body:
    who = account_name(settings.name)
    env = {
        "SERVER": "https://kubernetes.default.svc",
        "NAMESPACE": namespace,
        "TEMPLATE": settings.name,
        "LABEL": TEMPLATE_LABEL,
        "ANNOTATION": AUTHOR_ANNOTATION,
        "AUTHOR": f"system:serviceaccount:{namespace}:{who}",
        "LETTERS": LETTERS,
        "ARGUMENTS": " ".join(cron.arguments),
        "CONCURRENCY": cron.concurrency_policy,
        "SUCCESSFUL": str(cron.successful_jobs_history_limit),
        "FAILED": str(cron.failed_jobs_history_limit),
    }
    plain = of_a_program(place, labels={SCHEDULE_LABEL: settings.name}, tls=None)
    starts = container(plain, "start", place.head.image, _AMOUNTS, env)
    # The name of the Job is that of the CronJob and its time.
    time: Any = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    starts["env"] = [*starts["env"], {"name": "TIME", "valueFrom": time}]
    starts["command"] = ["python", "-c", _PROGRAM.read_text()]
    deadline, zone = cron.starting_deadline_seconds, cron.time_zone
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": settings.name, "labels": {SCHEDULE_LABEL: settings.name}},
        "spec": {
            "schedule": cron.schedule,
            **({"timeZone": zone} if zone else {}),
            **({"startingDeadlineSeconds": deadline} if deadline is not None else {}),
            "suspend": cron.suspend,
            # Of the pods, which end within seconds. The policy for the runs is the pod's to apply.
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "spec": {
                    "activeDeadlineSeconds": _LONGEST_SECONDS,
                    "backoffLimit": _TRIES,
                    "template": template(plain, starts, PodIdentity(who), None),
                }
            },
        },
    }
