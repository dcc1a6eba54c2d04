"""Renders a job template into an object of the cluster, and that object into a run. Pure functions.

The object is a suspended RayCronJob, as a suspended CronJob is the template of `kubectl create job --from`: KubeRay
serves the kind with all defaults of a RayJob, and its operator starts nothing from it.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from components.job_template.settings import NOT_A_WORD, WORD, JobTemplateSettings
from components.ray_cluster.manifests import API_VERSION, head_disruption_budget
from components.ray_cluster.pods import Body
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.manifests import RUN_ANNOTATION
from components.ray_job.settings import JOB_LABEL

TEMPLATE_LABEL = "ray-platform/job-template"
"""Label of a template and of its runs: the template's name."""

AUTHOR_ANNOTATION = "ray-platform/created-by"
"""Annotation of a run: the user who created it, as the API server knows that user."""

OPTIONS_ANNOTATION = "ray-platform/options"
"""Annotation of a template and of its runs: the options that a run may give."""

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


def job_template(settings: JobTemplateSettings, job: Body) -> Body:
    """The RayCronJob that holds a template. `job`: the RayJob that its settings render to."""
    metadata = job["metadata"]
    annotations = {key: value for key, value in metadata["annotations"].items() if key != RUN_ANNOTATION}
    if settings.options is not None:
        annotations[OPTIONS_ANNOTATION] = " ".join(settings.options)
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCronJob",
        "metadata": {
            "name": settings.name,
            "labels": {**(metadata.get("labels") or {}), TEMPLATE_LABEL: settings.name},
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {"schedule": _SCHEDULE, "suspend": True, "jobTemplate": job["spec"]},
    }


def heads_disruption_budget(own: RayClusterSettings) -> Body:
    """The PodDisruptionBudget that prevents eviction of the heads of all runs."""
    budget = head_disruption_budget(own, JOB_LABEL)
    return {**budget, "spec": {**budget["spec"], "minAvailable": _ALL}}


def run_of(template: Mapping[str, Any], arguments: Sequence[str], author: str) -> Body:
    """A run: the RayJob that the template describes, with arguments. `template`: the RayCronJob as the API server has
    it. `author`: the user who creates it.

    Raises BadArgumentsError.
    """
    metadata, spec = template["metadata"], template["spec"]["jobTemplate"]
    for each in arguments:
        if not re.fullmatch(WORD, each):
            raise BadArgumentsError(f"{each!r} {NOT_A_WORD}")
    suffix = "".join(secrets.choice(LETTERS) for _ in range(RANDOM))
    return {
        "apiVersion": API_VERSION,
        "kind": "RayJob",
        "metadata": {
            "name": f"{metadata['name']}-{suffix}",
            "namespace": metadata["namespace"],
            "labels": dict(metadata["labels"]),
            "annotations": {**(metadata.get("annotations") or {}), AUTHOR_ANNOTATION: author},
        },
        "spec": {**spec, "entrypoint": " ".join([spec["entrypoint"], *arguments])},
    }
