"""Converts files of others into a cluster of the stack file: those of Ray's operators before KubeRay (`Ray` of
ray.k8s.io, and `RayCluster` of cluster.ray.io), and those of `launch_cluster start-cai` of ray-serve-cai.

The operators' files have the fields of the cluster launcher, so they are read like its files; each note keeps its place
in the original document.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.problems import Path
from stacks.launcher_files.launcher import read_launcher
from stacks.launcher_files.pods import pod_settings
from stacks.launcher_files.reader import (
    RELEASE,
    Answers,
    Imported,
    Note,
    Reader,
    RefusedError,
    dns_name,
    parsed,
    versions,
)

FIRST_OPERATOR = "cluster.ray.io"
PROPOSAL = "ray.k8s.io"

CONFIGURATION: Path = ("spec", "configuration")
"""The field of a `Ray` object that contains a file of the cluster launcher as text."""

_LAUNCHERS_NAMES = {
    "maxWorkers": "max_workers",
    "upscalingSpeed": "upscaling_speed",
    "idleTimeoutMinutes": "idle_timeout_minutes",
    "headPodType": "head_node_type",
    "podTypes": "available_node_types",
    "headStartRayCommands": "head_start_ray_commands",
    "workerStartRayCommands": "worker_start_ray_commands",
    "headSetupCommands": "head_setup_commands",
    "workerSetupCommands": "worker_setup_commands",
}
_LAUNCHERS_NAMES_OF_TYPES = {
    "podConfig": "node_config",
    "rayResources": "resources",
    "minWorkers": "min_workers",
    "maxWorkers": "max_workers",
}
_SAME = ("minWorkers", "maxWorkers", "initialWorkers", "autoScalingMode", "targetUtilization", "idleTimeoutMinutes")
"""Fields of the proposal that a RayCluster of the stack file has, too."""


def from_first_operator(document: Mapping[str, Any], answers: Answers) -> Imported:
    """A `RayCluster` of cluster.ray.io/v1. Raises RefusedError."""
    reader = Reader(document)
    metadata, spec = _metadata(reader), reader.mapping("spec")
    types = spec.sequence("podTypes")
    places: dict[Path, Path] = {(name,): (*spec.path, key) for key, name in _LAUNCHERS_NAMES.items()}
    launcher = {_LAUNCHERS_NAMES.get(str(key), key): part.value for key, part in spec.items()}
    launcher["available_node_types"] = {}
    for index, part in types.items():
        name = types.mapping(index).text("name") or part.at("name").refuse("the name of a pod type")
        place: Path = ("available_node_types", name)
        launcher["available_node_types"][name] = {
            _LAUNCHERS_NAMES_OF_TYPES.get(str(key), key): each.value for key, each in part.items() if key != "name"
        }
        places[place] = part.path
        places |= {(*place, new): (*part.path, old) for old, new in _LAUNCHERS_NAMES_OF_TYPES.items()}
    launcher = {"cluster_name": metadata.get("name"), "provider": {"type": "kubernetes"}, **launcher}
    imported = _from_launcher(launcher, answers, spec, places)
    return Imported(imported.cluster, metadata.get("namespace"), reader.log.finish(document))


def from_proposal(document: Mapping[str, Any], answers: Answers) -> Imported:
    """A `Ray` of ray.k8s.io/v1alpha1. Raises RefusedError."""
    reader = Reader(document)
    metadata, spec = _metadata(reader), reader.mapping("spec")
    if text := spec.text("configuration"):
        return _configuration(text, reader, metadata, answers)
    cluster: dict[str, Any] = {"name": answers.name or metadata.get("name") or "ray"}
    head = pod_settings(spec.mapping("head"), "ray-head", ("head",))
    worker = pod_settings(spec.mapping("worker"), "ray-worker", ("workerGroups", "workers"))
    image = head.pop("image", None)
    cluster |= versions(image, answers, reader.log, ("spec", "head"))
    if head:
        cluster["head"] = head
    if worker.get("image") == cluster["image"]:
        del worker["image"]
    cluster |= {key: spec.at(key).use() for key in _SAME if key in spec}
    if {"autoScalingMode", "targetUtilization"} <= set(cluster):
        # The one that Ray read (ray/autoscaler/_private/autoscaler.py).
        left = "targetUtilization" if cluster["autoScalingMode"] == "aggressive" else "autoScalingMode"
        del cluster[left]
        spec.at(left).note("Ray ignored it, because the other setting decides how fast workers are added", "remove it")
    if "cpu" not in worker:
        worker = {"cpu": "1", "memory": "4Gi", **worker}
        reader.log.advise(
            ("spec", "worker"),
            "the object does not set the resources of a worker",
            "set cpu, memory and gpus of a worker",
            ("workerGroups", "workers", "cpu"),
        )
    cluster["workerGroups"] = [{"groupName": "workers", **worker}]
    return Imported(cluster, metadata.get("namespace"), reader.log.finish(document))


def _configuration(text: str, reader: Reader, metadata: dict[str, Any], answers: Answers) -> Imported:
    found = parsed(text, CONFIGURATION)
    launcher = found.value if found else None
    if not isinstance(launcher, dict):
        raise RefusedError(Note(CONFIGURATION, "it is not a mapping", "use a file of the cluster launcher"))
    name = Answers(answers.ray_version, answers.name or metadata.get("name"))
    imported = _from_launcher(launcher, name, reader.mapping("spec").at("configuration"), {})
    namespace = metadata.get("namespace") or imported.namespace
    return Imported(imported.cluster, namespace, reader.log.finish(reader.value))


def _from_launcher(
    launcher: Mapping[Any, Any], answers: Answers, part: Reader, places: Mapping[Path, Path]
) -> Imported:
    """The cluster of a launcher's file that a part of the document has, with the notes at their places there. Raises
    RefusedError."""
    inner = Reader(launcher)
    try:
        imported = read_launcher(inner, answers)
    except RefusedError as error:
        raise RefusedError(*(_moved(note, places, part.path) for note in error.notes)) from error
    part.log.notes += [_moved(note, places, part.path) for note in inner.log.finish(launcher)]
    part.use()
    return imported


def _metadata(reader: Reader) -> dict[str, Any]:
    for key in ("apiVersion", "kind"):
        reader.at(key).use()
    metadata = reader.mapping("metadata")
    reader.at("status").note("it is the status that the operator reported", "remove it")
    return {key: value for key in ("name", "namespace") if (value := metadata.text(key))}


def _moved(note: Note, places: Mapping[Path, Path], rest: Path) -> Note:
    """The note at its place in the original document, by the longest known prefix of its path."""
    for length in range(len(note.path), 0, -1):
        if place := places.get(note.path[:length]):
            return replace(note, path=(*place, *note.path[length:]))
    return replace(note, path=(*rest, *note.path))


_NUM_WORKERS = 1
"""Its default."""

_CPU, _MEMORY = 16, 64
"""Its defaults of a worker."""


def is_cai_file(document: Any) -> bool:
    return isinstance(document, Mapping) and isinstance(document.get("cai"), Mapping)


def from_cai(document: Mapping[str, Any], answers: Answers) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """The values of `cml`, and notes. Raises RefusedError if the file is invalid, or lacks required values.

    The API key is never copied, nor shown.
    """
    reader = Reader(document)
    cai, ray = reader.mapping("cai"), reader.mapping("ray")
    cai.at("api_key").note(
        "a stack file is plain text, so the key is not copied",
        "run `pulumi config set --secret ray-platform:cmlApiKey`, or set CML_API_KEY; replace a key that others know",
    )
    if not answers.ray_version or not RELEASE.fullmatch(answers.ray_version):
        raise RefusedError(Note(("cai",), "the file has no version of Ray", "set --ray-version, as in the runtime"))
    cluster: dict[str, Any] = {
        "name": answers.name or dns_name("ray-cluster", 53, "ray"),
        "project": _required(cai, "project_id"),
        "rayVersion": answers.ray_version,
    }
    if runtime := cai.text("runtime_identifier"):
        cluster["runtimeIdentifier"] = runtime
    count = cai.whole("num_workers")
    cluster["numWorkers"] = _NUM_WORKERS if count is None else count
    cluster["resources"] = _resources(cai.mapping("resources"), {"cpu": _CPU, "memory": _MEMORY})
    head = cai.mapping("head_resources")
    head.at("num_gpus").note("a head has no GPUs", "nothing to do")
    if head.keys():
        cluster["headResources"] = _resources(head, cluster["resources"])
        cluster["headResources"].pop("gpus", None)
    for key, name in (("port", "port"), ("dashboard_port", "dashboardPort")):
        if (port := ray.whole(key)) is not None:
            cluster[name] = port
    return {"host": _required(cai, "host").rstrip("/"), "clusters": [cluster]}, reader.log.finish(document)


def _required(part: Reader, key: str) -> str:
    value = part.text(key)
    if value is None:
        raise RefusedError(Note((*part.path, key), "it is not set", "set it"))
    return value


def _resources(part: Reader, defaults: Mapping[str, Any]) -> dict[str, Any]:
    found = {key: _plain(part.number(key) or defaults[key]) for key in ("cpu", "memory")}
    gpus = part.whole("num_gpus")
    return {**found, "gpus": gpus} if gpus else found


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value
