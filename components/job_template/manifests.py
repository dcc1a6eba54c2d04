"""Renders a job template into an object of the cluster, that object into a run, and its schedule into a CronJob whose
pod starts a run, with a user's rights. Pure functions.

The object is a suspended RayCronJob, as a suspended CronJob is the template of `kubectl create job --from`: KubeRay
serves the kind with all defaults of a RayJob, and its operator starts nothing from it.
"""

import base64
import re
import secrets
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from components import payloads
from components.access.manifests import PREFIX, account, role, role_binding, service_account
from components.access.personas import schedule_of
from components.job_template.settings import (
    CODE_FILE,
    CODE_FOLDER,
    NOT_A_WORD,
    WORD,
    CronSettings,
    JobTemplateSettings,
)
from components.objects import Object
from components.ray_cluster.manifests import API_VERSION
from components.ray_cluster.objects import beside_ray_clusters
from components.ray_cluster.pods import PodIdentity, container, merged_over, template, with_image_alone
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.manifests import RUN_ANNOTATION
from components.ray_job.settings import JOB_LABEL
from components.tenant.demand import Demand, defaults, group_of
from components.tenant.settings import LimitSettings
from core.body import Body

TEMPLATE_LABEL = "ray-platform/job-template"
"""Label of a template and of its runs: the template's name."""

AUTHOR_ANNOTATION = "ray-platform/created-by"
"""Annotation of a run: the user who created it, as the API server knows that user."""

SIZE_LABEL = "ray-platform/job-size"
"""Label of a size of a template and of its runs: the size's name. Without it they have the template's own cluster."""

SIZES_ANNOTATION = "ray-platform/sizes"
"""Annotation of a template with sizes, of its sizes and of all its runs: the names of the sizes."""

OPTIONS_ANNOTATION = "ray-platform/options"
"""Annotation of a template and of its runs: the options that a run may give."""

CODE_ANNOTATION = "ray-platform/code"
"""Annotation of a template whose runs bring code, with _LOCAL. Of a run: Ray's URI of the code."""

_LOCAL = "local"

CODE_URI = "gcs://_ray_pkg_[0-9a-f]{40}[.]zip"
"""Ray's URIs of archives: by the SHA-1 of their bytes (ray/_private/runtime_env/packaging.py: get_uri_for_package)."""

CODE_VOLUME = "ray-platform-code"
"""Volume of the pod that submits with the code of the run. In a template it names no ConfigMap that anybody makes."""

LONGEST_CODE = 512 * 2**10
"""Bytes of the code of a run. Kubernetes allows twice as much in a ConfigMap; etcd has those of all runs that exist."""

_LONGEST_NAME = 253
"""Characters of a ConfigMap's name."""

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Those of Kubernetes' generated names, which make no words (apimachinery, pkg/util/rand)."""

RANDOM = 5
"""How many of them a run's name ends with."""

_SCHEDULE = "@yearly"
"""KubeRay requires one, and looks at none of a suspended RayCronJob (raycronjob_controller.go: Reconcile)."""

_ALL = 2**31 - 1
"""More heads than ever run: no drain evicts the head of any run."""


class BadArgumentsError(ValueError):
    """Arguments that a run must not have; the message has the reason."""


def size_name(template_name: str, size: str | None = None) -> str:
    """Name of the RayCronJob that holds a size of a template. None: the template itself."""
    return f"{template_name}-{size}" if size else template_name


def job_template(settings: JobTemplateSettings, job: Body, size: str | None = None) -> Body:
    """The RayCronJob that holds a template, or a size of it. `job`: the RayJob that its settings render to."""
    metadata = job["metadata"]
    annotations = {key: value for key, value in metadata["annotations"].items() if key != RUN_ANNOTATION}
    if settings.options is not None:
        annotations[OPTIONS_ANNOTATION] = " ".join(settings.options)
    if settings.sizes:
        annotations[SIZES_ANNOTATION] = ", ".join(settings.sizes)
    labels = {**(metadata.get("labels") or {}), TEMPLATE_LABEL: settings.name, **({SIZE_LABEL: size} if size else {})}
    spec = job["spec"]
    if settings.local_code:
        annotations[CODE_ANNOTATION] = _LOCAL
        spec = _with_code(spec, CODE_VOLUME)
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCronJob",
        "metadata": {
            "name": size_name(settings.name, size),
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {"schedule": _SCHEDULE, "suspend": True, "jobTemplate": spec},
    }


def resource_names(settings: JobTemplateSettings) -> dict[str, str | None]:
    """The names of the resources of a template and of its sizes, each with its size."""
    return {settings.name: None, **{f"{settings.name}.{size}": size for size in settings.sizes}}


def brings_code(template: Mapping[str, Any]) -> bool:
    """Whether the runs of a template bring their code. `template`: as for `run_of`."""
    return CODE_ANNOTATION in (template["metadata"].get("annotations") or {})


def _with_code(spec: Body, name: str) -> Body:
    """The spec of a RayJob whose pod that submits mounts the ConfigMap of this name. Without such a pod `check` refuses
    the template."""
    pod = spec.get("submitterPodTemplate")
    if not pod:
        return spec
    mount = {"name": CODE_VOLUME, "mountPath": CODE_FOLDER, "readOnly": True}
    submits = {"name": pod["spec"]["containers"][0]["name"], "volumeMounts": [mount]}
    volume = {"name": CODE_VOLUME, "configMap": {"name": name}}
    mounted = merged_over(pod, {"spec": {"containers": [submits], "volumes": [volume]}}, ("submitterPodTemplate",))
    return {**spec, "submitterPodTemplate": mounted}


def beside_runs(own: RayClusterSettings) -> list[Object]:
    """The objects beside the RayClusters of all runs, for one namespace."""
    return beside_ray_clusters(own, JOB_LABEL, _ALL)


def run_of(template: Mapping[str, Any], arguments: Sequence[str], author: str, code: str | None = None) -> Body:
    """A run: the RayJob that the template describes, with arguments. `template`: the RayCronJob as the API server has
    it. `author`: the user who creates it. `code`: Ray's URI of the code, if runs of the template bring it.

    Raises BadArgumentsError.
    """
    metadata, spec = template["metadata"], template["spec"]["jobTemplate"]
    for each in arguments:
        if not re.fullmatch(WORD, each):
            raise BadArgumentsError(f"{each!r} {NOT_A_WORD}")
    name = f"{metadata['name']}-{''.join(secrets.choice(LETTERS) for _ in range(RANDOM))}"
    annotations = {**(metadata.get("annotations") or {}), AUTHOR_ANNOTATION: author}
    if code:
        annotations[CODE_ANNOTATION], spec = code, _with_code(spec, _name_of_code(name, author))
    return {
        "apiVersion": API_VERSION,
        "kind": "RayJob",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": dict(metadata["labels"]),
            "annotations": annotations,
        },
        "spec": {**spec, "entrypoint": " ".join([spec["entrypoint"], *arguments])},
    }


def code_of(run: Mapping[str, Any], content: bytes) -> Body:
    """The ConfigMap with the code of a run, which is deleted with it. `run`: as the API server has it. `content`: an
    archive of at most LONGEST_CODE."""
    metadata = run["metadata"]
    owner = {"apiVersion": API_VERSION, "kind": "RayJob", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": _name_of_code(metadata["name"], metadata["annotations"][AUTHOR_ANNOTATION]),
            "namespace": metadata["namespace"],
            "ownerReferences": [owner],
        },
        "immutable": True,
        "binaryData": {CODE_FILE: base64.b64encode(content).decode()},
    }


def _name_of_code(run: str, author: str) -> str:
    """Contains the author, so that nobody can make the ConfigMap of somebody else's run (access/admission.py:
    _NAME_OF_CODE)."""
    name = f"{run}.{author.encode().hex()}"
    if len(name) > _LONGEST_NAME:
        message = (
            f"user name {author!r} is too long for runs with local code, which have it in the name of a ConfigMap: use "
            f"one of at most {(_LONGEST_NAME - len(run) - 1) // 2} bytes"
        )
        raise BadArgumentsError(message)
    return name


SCHEDULE_LABEL = "ray-platform/job-schedule"
"""Label of the pods that start runs: the template's name."""

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
        "schedule-role": role(whole, schedule_of(name, size_name(name, cron.size))),
        "schedule-role-binding": role_binding(whole, whole, [account(who, namespace)]),
        "schedule": _cron_job(settings, cron, namespace, place),
    }


def _cron_job(settings: JobTemplateSettings, cron: CronSettings, namespace: str, place: RayClusterSettings) -> Body:
    who = account_name(settings.name)
    env = {
        "SERVER": "https://kubernetes.default.svc",
        "NAMESPACE": namespace,
        "TEMPLATE": size_name(settings.name, cron.size),
        "SELECTOR": f"{TEMPLATE_LABEL}%3D{settings.name}",
        "ANNOTATION": AUTHOR_ANNOTATION,
        "AUTHOR": f"system:serviceaccount:{namespace}:{who}",
        "LETTERS": LETTERS,
        "ARGUMENTS": " ".join(cron.arguments),
        "CONCURRENCY": cron.concurrency_policy,
        "SUCCESSFUL": str(cron.successful_jobs_history_limit),
        "FAILED": str(cron.failed_jobs_history_limit),
    }
    plain = with_image_alone(place, labels={SCHEDULE_LABEL: settings.name}, tls=None)
    starts = container(plain, "start", place.head.image, _AMOUNTS, env)
    # The name of the Job is that of the CronJob and its time.
    time: Any = {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}}
    starts["env"] = [*starts["env"], {"name": "TIME", "valueFrom": time}]
    starts["command"] = ["python", "-c", payloads.text("start_run")]
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


def demand_of_cron_job(body: Mapping[str, Any], limits: LimitSettings | None) -> Demand:
    """The usage of a CronJob while its pod runs; paths are in its body."""
    name, job = body["metadata"]["name"], body["spec"]["jobTemplate"]["spec"]
    pod = group_of(("spec", "jobTemplate", "spec"), name, job, defaults(limits))
    return Demand(name, (pod,), {"count/cronjobs.batch": Decimal(1), "count/jobs.batch": Decimal(1)})
