"""Converts a manifest of KubeRay into a cluster of the stack file that renders to exactly the same RayCluster; a RayJob
or RayService into one of the tenant's `jobs` or `services`, with its cluster.

Fields that have a setting become settings. The remaining difference between the rendered settings and the manifest
becomes `podTemplate` and `overrides`, so that no field of a manifest is lost.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.manifests import ray_job
from components.ray_job.settings import JOB_LABEL, RayJobSettings
from components.ray_service.settings import SERVICE_LABEL
from core.pods import RAY_CLUSTERS
from core.problems import Path, Problem, Problems, StackFileError
from core.secrets import ADVICE, is_secret, secret_in
from core.strategic_merge import difference, part_of
from core.values import inside
from core.yaml_reader.document import document
from core.yaml_reader.scalars import DocumentError, resolve_of_kubernetes
from kuberay import OperatorContext, validate
from kuberay.releases import DEFAULT_FEATURE_GATES
from kuberay.schedulers import KUEUE_QUEUE_LABEL
from kuberay.schema import stored
from stacks.commands.importing.cluster_spec import image_of, settings_of
from stacks.commands.importing.places import of_manifest
from stacks.launcher_files.reader import (
    TEMPLATE,
    Answers,
    Imported,
    Log,
    Note,
    Owner,
    Reader,
    RefusedError,
    is_secret_annotation,
    of_groups,
    versions,
)
from stacks.load import parse
from stacks.objects.ray_clusters import with_tenant_values
from stacks.settings import TenantSettings

_TENANT = TenantSettings(name="any")
"""A placeholder for the cluster's tenant, without accounts."""

KINDS = RAY_CLUSTERS

_REQUIRED = {"name", "image", "rayVersion", "groupName", "labels", "annotations"}
"""Settings that no override can replace."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

_OPEN = "everybody who can reach the dashboard can run anything"
_AUTH_OVERRIDES: Path = ("overrides", "authOptions")

_SERVER = ("the API server maintains it", "remove it")

_INSTEAD = {
    "RayJob": "write it into the tenant's `jobs` (docs/jobs.md), or run `ray job submit` on the cluster",
    "RayCronJob": "write it into the tenant's `jobTemplates` with `cron` (docs/runs.md)",
    "RayService": "write it into the tenant's `services` (docs/services.md), or run `serve deploy` on the cluster",
}


def from_manifest(
    body: Mapping[str, Any],
    answers: Answers | None = None,
    rename: bool = False,
    label: str | None = None,
    settle: Callable[[Reader, str], None] | None = None,
) -> Imported:
    """The cluster of a RayCluster, RayJob, RayService or RayCronJob.

    `rename`: worker groups may get other names; KubeRay allows capitals in them. `label`: the cluster and its pods have
    it, with its name. `settle`: uses or notes the fields beside the cluster; default: notes that only the cluster is
    imported. Raises RefusedError if KubeRay would refuse the manifest, if it has a secret in plain text, or if it lacks
    required values.
    """
    reader = Reader(body)
    kind, answers = str(body.get("kind")), answers or Answers()
    path = KINDS[kind]
    if secrets := [*_secrets_in(body.get("metadata"), ("metadata",)), *_secrets_in(part_of(body, *path), path)]:
        raise RefusedError(*secrets)  # before any message that shows values
    refuse(body, answers)
    spec = reader
    for step in path:
        spec = spec.mapping(step)
    if not spec.value:
        raise RefusedError(Note(path, f"the {kind} has no cluster of its own", "import the cluster that it uses"))
    desired = completed(defaulted(spec.use()))
    _of_others(desired, body, path, reader.log)
    if rename:
        _rename_groups(desired, path, reader.log)
    namespace, metadata = _metadata(reader, answers)
    if label:
        metadata["labels"] = {**metadata.get("labels", {}), label: metadata["name"]}
        _label(desired, label, metadata["name"])
    image = image_of(desired)
    if image is None:
        raise RefusedError(Note((*path, "headGroupSpec"), "the head's container has no image", "set one"))
    entry = {
        **metadata,
        **versions(image, answers, reader.log, (*path, "rayVersion"), desired.get("rayVersion")),
        **settings_of(desired),
        "podDefaults": "none",
    }
    of_groups(entry, reader.log, path)
    (settle or _settle)(reader, kind)
    cluster = _exact(_accepted(entry), desired, path)
    _advise(cluster, path, reader.log)
    return Imported(cluster, namespace, reader.log.finish(body), path=path)


def has_cluster(body: Mapping[str, Any]) -> bool:
    """Whether a manifest of one of the kinds contains a cluster spec, instead of a reference to a cluster by name."""
    return part_of(body, *KINDS[str(body.get("kind"))]) is not None


def completed(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with the empty parts that others than KubeRay need: Ray's autoscaler the list of groups, and Kueue the
    parameters, which it would otherwise write back as null."""
    spec.setdefault("workerGroupSpecs", [])
    for group in (spec.get("headGroupSpec"), *spec["workerGroupSpecs"]):
        if isinstance(group, dict):
            group.setdefault("rayStartParams", {})
    return spec


def _of_others(spec: dict[str, Any], body: Mapping[str, Any], path: Path, log: Log) -> None:
    """Takes out what other programs set while the cluster runs."""
    labels = (body.get("metadata") or {}).get("labels") or {}
    if "suspend" in spec and KUEUE_QUEUE_LABEL in labels:
        log.advise((*path, "suspend"), "Kueue sets it", "nothing to do")
        del spec["suspend"]
    for index, group in enumerate(spec.get("workerGroupSpecs") or ()):
        if isinstance(group, dict) and group.pop("scaleStrategy", None):
            place = (*path, "workerGroupSpecs", index, "scaleStrategy")
            log.advise(place, "Ray's autoscaler names there the workers that it removes", "nothing to do")


_TEMPLATED = re.compile(r"\{\{-?\s*(?:[.$]|include\b|template\b|tpl\b|toYaml\b|if\b|with\b|range\b)")
"""An action of a template of Helm."""

_PATCH = "a patch has only a part: import what `kubectl kustomize FOLDER` renders with it, or add the rest"


def refuse(body: Mapping[str, Any], answers: Answers) -> None:
    """Raises RefusedError for what KubeRay or the API server refuses of an object, and for a template of Helm."""
    for path, value in inside(body):
        if isinstance(value, str) and _TEMPLATED.search(value):
            raise RefusedError(Note(path, *TEMPLATE))
    gates = dict.fromkeys(DEFAULT_FEATURE_GATES, True)
    operator = OperatorContext(feature_gates=gates)
    if answers.operator_version:
        operator = replace(operator, version=answers.operator_version)
    problems = validate(without_nulls({**body, "apiVersion": "ray.io/v1", "status": None}), operator)
    if problems:
        # Of a misspelt field the other message says enough.
        patch = all(each.rule == "required-field" for each in problems) and "spec" in body
        raise RefusedError(*(Note(each.path, each.message, _PATCH if patch else _remedy(each)) for each in problems))


def _remedy(problem: Problem) -> str:
    """The option that replaces what is refused, if there is one."""
    match problem.path:
        case ("metadata", "name" | "namespace" as key):
            return f"--{key} sets another"
    if problem.release:
        return f"--operator-version {problem.release}.0 imports it for that release"
    return "KubeRay would refuse it"


def _label(spec: dict[str, Any], label: str, name: str) -> None:
    for group in (spec.get("headGroupSpec"), *(spec.get("workerGroupSpecs") or ())):
        metadata = ((group or {}).get("template") or {}).setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), label: name}


def _secrets_in(value: Any, path: Path) -> Iterator[Note]:
    """Secrets in plain text, by the name of a variable, label or annotation, or by their look. Without their values."""
    if path[-2:] == ("annotations", LAST_APPLIED):
        return
    if isinstance(value, Mapping):
        variable = set(value) == {"name", "value"} and is_secret(str(value["name"]), str(value["value"]))
        if variable and not secret_in(str(value["value"])):
            yield Note(path, f"{value['name']!r} looks like a secret, and a stack file is plain text", ADVICE)
        for key, each in value.items():
            annotation = path[-1] in ("annotations", "labels") and is_secret_annotation(str(key), str(each))
            if annotation and not secret_in(str(each)):
                yield Note((*path, key), f"{key!r} looks like a secret, and a stack file is plain text", ADVICE)
            yield from _secrets_in(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _secrets_in(each, (*path, index))
    elif isinstance(value, str) and (kind := secret_in(value)):
        yield Note(path, f"it has {kind}, and a stack file is plain text", ADVICE)


def _rename_groups(spec: dict[str, Any], path: Path, log: Log) -> None:
    """Gives worker groups names that the stack file allows, unless two would have the same."""
    names = [str(group.get("groupName")) for group in spec.get("workerGroupSpecs") or ()]
    valid = [re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") for name in names]
    if valid == names or len(set(valid)) < len(valid):
        return
    for index, (name, new) in enumerate(zip(names, valid, strict=True)):
        if name != new:
            spec["workerGroupSpecs"][index]["groupName"] = new
            place = (*path, "workerGroupSpecs", index, "groupName")
            why = f"{name!r} is not a name of a worker group: lower-case letters, digits and hyphens are allowed"
            log.advise(place, why, f"it is {new!r} here")


def _metadata(reader: Reader, answers: Answers) -> tuple[str | None, dict[str, Any]]:
    """The namespace; name, labels and annotations."""
    reader.at("apiVersion").use()
    reader.at("kind").use()
    reader.at("status").note("it is the status that the operator reported", "remove it")
    metadata = reader.mapping("metadata")
    namespace, name = metadata.text("namespace"), metadata.text("name")
    if not (answers.name or name):
        raise RefusedError(Note(metadata.path, "the object has no name", "set one, for example --name training"))
    settings = {key: dict(_kept(metadata.mapping(key))) for key in ("labels", "annotations")}
    for _, part in metadata.items():
        if part.path not in reader.log and part.path[-1] not in ("labels", "annotations"):
            part.note(*_SERVER)
    return namespace, {"name": answers.name or name, **{key: value for key, value in settings.items() if value}}


_MAINTAINED = {
    "kubectl.kubernetes.io/": "kubectl",
    "meta.helm.sh/": "Helm",
    "helm.sh/": "Helm",
    "argocd.argoproj.io/": "Argo CD",
    "kustomize.toolkit.fluxcd.io/": "Flux",
    "helm.toolkit.fluxcd.io/": "Flux",
    "ray.io/kuberay-version": "KubeRay",
}
"""Beginnings of labels and annotations that a program maintains."""


def _kept(part: Reader) -> Iterator[tuple[str, Any]]:
    """The labels or annotations that nobody maintains."""
    for key, each in part.items():
        name = str(key)
        by_helm = (name, each.value) == ("app.kubernetes.io/managed-by", "Helm")
        owner = "Helm" if by_helm else next((by for start, by in _MAINTAINED.items() if name.startswith(start)), None)
        if owner:
            each.note(f"{owner} maintains it", "remove it")
        else:
            yield name, each.use()


def _settle(reader: Reader, kind: str) -> None:
    """Notes the fields of a kind besides its cluster."""
    if kind == "RayCluster":
        return
    spec = reader.at("spec")
    parts = [*spec.items(), *spec.at("jobTemplate").items()] if kind == "RayCronJob" else spec.items()
    for key, part in parts:
        if key not in ("jobTemplate", KINDS[kind][-1]):
            part.note(f"only the cluster of a {kind} is imported", _INSTEAD[kind])


def _advise(entry: Mapping[str, Any], path: Path, log: Log) -> None:
    """Recommends defaults of the stack file that the manifest does not use."""
    overrides = entry.get("overrides", {})
    if overrides.get("authOptions", {}) is None:
        part, at = _to_delete(entry, _AUTH_OVERRIDES)
        log.advise(path, _OPEN, f"delete {part}, so that callers need a token", at)
    elif entry.get("authOptions", {}).get("mode") == "disabled":
        log.advise(path, _OPEN, "delete `authOptions`, so that callers need a token", ("authOptions",))
    options = overrides.get("autoscalerOptions", {})
    if options is None or "version" in options:
        version = (options or {}).get("version")
        part, at = _to_delete(entry, ("overrides", "autoscalerOptions", *(() if options is None else ("version",))))
        set_to = f"sets version {version}" if version else "does not set the version"
        advice = f"delete {part} to set v2, the stack's default"
        log.advise(path, f"the manifest {set_to} of Ray's autoscaler", advice, at)
    advice = (
        "delete `podDefaults: none` to give the pods the stack's defaults (security context, priority); keep it to "
        "leave them as they were"
    )
    log.advise(path, "the pods have only what the manifest sets", advice, ("podDefaults",))


def _to_delete(entry: Mapping[str, Any], path: Path) -> tuple[str, Path]:
    """What a person deletes to remove the setting at a path, in words, and its place: a parent that would be empty
    without it goes, too, because an empty one is null and removes the default."""
    while len(path) > 1 and len(part_of(entry, *path[:-1])) == 1:
        path = path[:-1]
    value = part_of(entry, *path)
    written = "" if isinstance(value, Mapping) else f": {'null' if value is None else value}"
    return f"`{path[-1]}{written}`", path


def _accepted(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry without the settings that are stricter than KubeRay: their values become overrides."""
    while True:
        try:
            RayClusterSettings.model_validate(entry, by_alias=True, by_name=False)
        except ValidationError as error:
            if not any(_without(entry, fault["loc"]) for fault in error.errors(include_url=False)):
                return entry
        else:
            return entry


def _without(entry: dict[str, Any], place: Path) -> bool:
    """Removes the setting at a place from the entry, or from a group in it; False if the setting is required."""
    holder: Any = entry
    for step in place[: 2 if place[:1] == ("workerGroups",) else 1 if place[:1] == ("head",) else 0]:
        holder = holder[step]
    left = [step for step in place if isinstance(holder, dict) and step in holder and step not in _REQUIRED]
    if left:
        del holder[left[0]]
    return bool(left)


def _exact(entry: dict[str, Any], desired: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The entry with the overrides that make it render to the desired spec."""
    now = _rendered(entry, desired, path)
    _add_template(entry.setdefault("head", {}), now["headGroupSpec"], desired["headGroupSpec"])
    if not entry["head"]:
        del entry["head"]
    rendered = now.get("workerGroupSpecs", [])
    for group, is_now, is_desired in zip(
        entry.get("workerGroups", []), rendered, desired.get("workerGroupSpecs", []), strict=True
    ):
        _add_template(group, is_now, is_desired)
    if overrides := difference(_rendered(entry, desired, path), desired):
        entry["overrides"] = overrides
    if (made := _rendered(entry, desired, path)) != desired:
        left = difference(made, desired)
        raise RefusedError(Note(path, f"{left!r} cannot be written in a stack file", "report it, with the manifest"))
    return entry


def _add_template(group: dict[str, Any], now: Mapping[str, Any], desired: Mapping[str, Any]) -> None:
    if template := difference(now["template"], desired["template"]):
        group["podTemplate"] = template


def _rendered(entry: Mapping[str, Any], desired: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The spec that an entry renders to, with its defaults."""
    try:
        settings = RayClusterSettings.model_validate(entry, by_alias=True, by_name=False)
        return defaulted(with_tenant_values(_TENANT, settings)["spec"])
    except ValidationError as error:
        raise RefusedError(*_faults(error, entry, desired, path)) from error
    except ValueError as error:
        raise RefusedError(Note(path, str(error), "change the manifest")) from error


def _faults(error: ValidationError, entry: Mapping[str, Any], desired: Mapping[str, Any], path: Path) -> Iterator[Note]:
    for fault in error.errors(include_url=False):
        cause = fault.get("ctx", {}).get("error")
        problems = cause.problems if isinstance(cause, Problems) else ()
        texts = [(each.path, each.message) for each in problems] or [((), fault["msg"].removeprefix("Value error, "))]
        for inner, text in texts:
            yield Note(of_manifest(desired, path, entry, (*fault["loc"], *inner)), text, "change the manifest")


def defaulted(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with the CRD's defaults, without nulls, and with numeric quantities as text."""
    body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "any"}, "spec": spec}
    made, _ = stored(body, OperatorContext())
    whole: dict[str, Any] = made["spec"]
    for group in (whole.get("headGroupSpec"), *(whole.get("workerGroupSpecs") or ())):
        pod = ((group or {}).get("template") or {}).get("spec") or {}
        for container in (*(pod.get("containers") or ()), *(pod.get("initContainers") or ())):
            for amounts in (container.get("resources") or {}).values():
                if isinstance(amounts, dict):
                    amounts.update({name: str(each) for name, each in amounts.items() if isinstance(each, int | float)})
    return whole


def without_nulls(value: Any) -> Any:
    """The value without null keys: the API server treats null as absent."""
    if isinstance(value, Mapping):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


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

    if secrets := list(_secrets_in(body.get("spec"), ("spec",))):
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
        raise NotWrittenError("it has a rayClusterSpec and a clusterSelector, which KubeRay prefers")
    _others(spec, "rayClusterSpec")
    return given


def _service(spec: Reader) -> dict[str, Any]:
    given = {"serveConfigV2": _mapping(spec.text("serveConfigV2") or "", "serveConfigV2")}
    given |= _copied(spec, _OF_SERVICE)
    for key in ("deploymentUnhealthySecondThreshold", "serviceUnhealthySecondThreshold"):
        spec.at(key).note("KubeRay ignores it since 1.3", "remove it")
    _others(spec, "rayClusterConfig")
    return given


def _cron(spec: Reader) -> dict[str, Any]:
    cron = {"schedule": spec.text("schedule"), **_copied(spec, {"timeZone": None})}
    if spec.at("suspend").use():
        spec.log.advise(
            (*spec.path, "suspend"), "the schedule is suspended, and here it runs", "remove cron until then"
        )
    _others(spec, "jobTemplate")
    return {**_job(spec.mapping("jobTemplate")), "cron": {**cron, "concurrencyPolicy": "Allow"}}


OWNERS = {
    "RayCronJob": OwnerKind("jobTemplates", JOB_LABEL, _cron),
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
