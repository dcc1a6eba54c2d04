"""Converts a RayJob or RayService into one of the tenant's `jobs` or `services`, with its cluster."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from components.ray_job.manifests import ray_job
from components.ray_job.settings import JOB_LABEL, RayJobSettings
from components.ray_service.settings import SERVICE_LABEL
from core.problems import StackFileError
from core.strategic_merge import difference
from core.yaml_reader.document import DocumentError, document
from core.yaml_reader.scalars import resolve_of_kubernetes
from stacks.commands.importing.manifests import from_manifest, secrets_in
from stacks.commands.importing.reader import Answers, Imported, Owner, Reader, RefusedError
from stacks.load import parse
from stacks.objects.ray_clusters import with_tenant_values
from stacks.settings import TenantSettings


class NotWrittenError(Exception):
    """The object has no place in `jobs` or `services`; the message has the reasons."""


@dataclass(frozen=True)
class OwnerKind:
    """A kind of KubeRay with a cluster of its own."""

    key: str
    """Its key in a tenant."""

    label: str
    """Label of its pods with its name."""

    settings: Callable[[Reader], dict[str, Any]]
    """Its settings from the spec, without the cluster's."""


def from_owner(body: Mapping[str, Any], answers: Answers) -> Imported:
    """The job or service of a RayJob or RayService that has a cluster of its own.

    Raises RefusedError as `from_manifest` does, and NotWrittenError if the object alone has no place in a stack file.
    """
    kind = OWNERS[str(body["kind"])]
    settings: dict[str, Any] = {}

    def settle(reader: Reader, _kind: str) -> None:
        settings.update(kind.settings(reader.mapping("spec")))

    if secrets := list(secrets_in(body.get("spec"), ("spec",))):
        raise RefusedError(*secrets)
    imported = from_manifest(body, answers, rename=True, label=kind.label, settle=settle)
    labels = {key: value for key, value in imported.cluster["labels"].items() if key != kind.label}
    cluster = {key: value for key, value in imported.cluster.items() if key != "labels" or labels}
    if labels:
        cluster["labels"] = labels
    entry = {"name": cluster["name"], **settings}
    if "submitterPodTemplate" in entry:
        entry["submitterPodTemplate"] = _submitter(entry, cluster)
    made = replace(imported, cluster=cluster, owner=Owner(kind.key, entry))
    if reasons := faults(made):
        raise NotWrittenError(reasons)
    return made


def faults(imported: Imported, level: str = "privileged") -> str:
    """What `check` finds in the entry of a job or service, in one line; empty if nothing. `level`: the Pod Security
    level of its namespace."""
    owner = imported.owner
    assert owner
    tenant = {"name": "any", "podSecurity": level, owner.key: [imported.entry]}
    try:
        parse({"tenants": [tenant]})
    except StackFileError as error:
        place = f"ray-platform:tenants[0].{owner.key}[0]"
        return "; ".join(line.removeprefix(place).lstrip(".: ") for line in str(error).splitlines())
    return ""


def _job(spec: Reader) -> dict[str, Any]:
    given = _copied(spec, _OF_JOB)
    shuts_down = spec.at("shutdownAfterJobFinishes").use()
    if not shuts_down and "deletionStrategy" not in given:
        given["shutdownAfterJobFinishes"] = False
        stays = "the cluster stays after the job, with its GPUs"
        spec.log.advise((*spec.path, "shutdownAfterJobFinishes"), stays, "remove the key, so that it is deleted")
    elif shuts_down and "deletionStrategy" in given:
        given["shutdownAfterJobFinishes"] = True
    if text := spec.text("runtimeEnvYAML"):
        given["runtimeEnv"] = _mapping(text, "runtimeEnvYAML")
    if text := spec.text("entrypointResources"):
        given["entrypointResources"] = _mapping(text, "entrypointResources")
    spec.at("jobId").note("each run gets an ID of its own", "find it in the status of the RayJob")
    if spec.at("clusterSelector").value:
        raise NotWrittenError("it has a cluster of its own and a clusterSelector, which KubeRay prefers")
    _others(spec, "rayClusterSpec")
    return given


def _service(spec: Reader) -> dict[str, Any]:
    given = {"serveConfigV2": _mapping(spec.text("serveConfigV2") or "", "serveConfigV2")}
    given |= _copied(spec, _OF_SERVICE)
    for key in ("deploymentUnhealthySecondThreshold", "serviceUnhealthySecondThreshold"):
        spec.at(key).note("KubeRay ignores it since 1.3", "remove it")
    _others(spec, "rayClusterConfig")
    return given


OWNERS = {
    "RayJob": OwnerKind("jobs", JOB_LABEL, _job),
    "RayService": OwnerKind("services", SERVICE_LABEL, _service),
}

_OF_JOB: Mapping[str, Any] = {
    "entrypoint": None,
    "submissionMode": "K8sJobMode",
    "submitterConfig": None,
    "submitterPodTemplate": None,
    "metadata": None,
    "entrypointNumCpus": None,
    "entrypointNumGpus": None,
    "backoffLimit": 0,
    "activeDeadlineSeconds": None,
    "preRunningDeadlineSeconds": None,
    "suspend": False,
    "ttlSecondsAfterFinished": 0,
    "deletionStrategy": None,
}
_OF_SERVICE: Mapping[str, Any] = {
    "upgradeStrategy": None,
    "rayClusterDeletionDelaySeconds": None,
    "excludeHeadPodFromServeSvc": False,
}
"""Fields that are settings of the same name, with the defaults of KubeRay's CRD."""


def _copied(spec: Reader, fields: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: spec.at(key).use() for key in fields}
    return {key: value for key, value in given.items() if value not in (None, "", fields[key])}


def _mapping(text: str, field: str) -> dict[str, Any]:
    """The mapping in a text of YAML, or of JSON, which is YAML, too."""
    try:
        found = document(text, resolve_of_kubernetes)
    except DocumentError as error:
        raise NotWrittenError(f"{field}, line {error.span.line}: {error}") from error
    if found is None or not isinstance(found.value, dict):
        raise NotWrittenError(f"{field} is not a mapping")
    values: dict[str, Any] = json.loads(json.dumps(found.value))  # plain numbers
    return values


def _others(spec: Reader, cluster: str) -> None:
    """Refuses what has no setting: without it the object would not be the same."""
    left = [str(key) for key, part in spec.items() if key != cluster and part.path not in spec.log and part.value]
    if left:
        raise NotWrittenError(f"{', '.join(left)} cannot be written in a stack file")


def _submitter(entry: dict[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The pod template that makes the pod that submits exactly the manifest's."""
    template: dict[str, Any] = entry["submitterPodTemplate"]
    alone = {key: value for key, value in cluster.items() if key != "name"}
    plain = RayJobSettings.model_validate(
        {"name": entry["name"], "entrypoint": "python -V", "cluster": alone}, by_alias=True, by_name=False
    )
    own = plain.own_cluster
    assert own
    tenant = TenantSettings(name="any")
    made = ray_job(plain, with_tenant_values(tenant, own), own)["spec"]["submitterPodTemplate"]
    found: dict[str, Any] = difference(made, template)
    return found
