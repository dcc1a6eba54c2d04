"""Where the settings of an imported entry are in the document that it was made of. Pure functions."""

from collections.abc import Mapping
from typing import Any

from core.nodes import GPU_RESOURCE
from core.problems import Path
from core.strategic_merge import part_of, place_of
from stacks.launcher_files.reader import Imported

_OF_OWNER = {"runtimeEnv": "runtimeEnvYAML"}
"""Settings of jobs with another name than their fields."""

_CONTAINER: Path = ("template", "spec", "containers", 0)
"""Ray's, in a group."""

_OF_HEAD = {"image", "imagePullPolicy", "env", "volumeMounts", "volumes", "serviceAccount", "imagePullSecrets"}
"""Settings of a cluster that are in each of its pods; the head is the first one."""

_OF_AUTOSCALER = {"idleTimeout": "idleTimeoutSeconds", "autoScalingMode": "upscalingMode"}


def place_in(document: Any, imported: Imported, inner: Path) -> Path:
    """The place in the document of a part of the entry; empty if that is not known."""
    if imported.path:
        return of_manifest(part_of(document, *imported.path), imported.path, imported.entry, inner)
    return imported.place(inner)


def of_manifest(cluster: Any, spec: Path, entry: Mapping[str, Any], inner: Path) -> Path:
    """The same in a manifest. `cluster`: the spec of its RayCluster, which is at `spec`."""
    outside = len(spec) - 1 - spec[::-1].index("spec")
    if inner[:1] == ("cluster",):
        return of_manifest(cluster, spec, entry["cluster"], inner[1:])
    if inner[:1] in (("name",), ("labels",), ("annotations",)):
        return (*spec[:outside], "metadata", *inner)
    if "cluster" in entry:
        key = _OF_OWNER.get(str(inner[0]), str(inner[0])) if inner else ""
        if key in ("", "cron"):
            return (*spec[:outside], "spec")
        is_text = not isinstance(part_of(entry, inner[0]), list) and key != "submitterPodTemplate"
        return (*spec[:-1], key, *(inner[1:] if is_text else ()))
    return (*spec, *_of_cluster(cluster, entry, inner))


def _of_cluster(cluster: Any, entry: Mapping[str, Any], inner: Path) -> Path:
    match inner:
        case ("head", *rest):
            return _of_group(cluster, ("headGroupSpec",), entry.get("head", {}), tuple(rest))
        case ("workerGroups", int(index), *rest):
            return _of_group(cluster, ("workerGroupSpecs", index), entry["workerGroups"][index], tuple(rest))
        case ("overrides", *rest):
            return place_of(cluster, entry.get("overrides"), tuple(rest))[0]
        case (str(key), *_) if key in _OF_HEAD:
            return _of_group(cluster, ("headGroupSpec",), entry, inner)
        case (str(key),) if key in _OF_AUTOSCALER:
            return ("autoscalerOptions", _OF_AUTOSCALER[key])
        case ("autoscaling",):
            return ("enableInTreeAutoscaling",)
    return inner


def _of_group(cluster: Any, at: Path, settings: Mapping[str, Any], inner: Path) -> Path:
    """Of the head or a worker group, which is `at` this place of the cluster."""
    group = part_of(cluster, *at)
    container = part_of(group, *_CONTAINER)
    found: Path = inner
    match inner:
        case ("podTemplate", *rest):
            # Its lists are merged by names, so that its indexes are not those of the manifest.
            found = ("template", *place_of(part_of(group, "template"), settings.get("podTemplate"), tuple(rest))[0])
        case ("cpu" | "memory" | "gpus" | "gpuResource" as key,):
            name = key if key in ("cpu", "memory") else settings.get("gpuResource", GPU_RESOURCE)
            limits = part_of(container, "resources", "limits", name) is not None
            found = (*_CONTAINER, "resources", "limits" if limits else "requests", name)
        case ("env", str(name), *_):
            names = [part_of(each, "name") for each in part_of(container, "env") or ()]
            found = (*_CONTAINER, "env", *((names.index(name),) if name in names else ()))
        case ("image" | "imagePullPolicy" | "volumeMounts", *_):
            found = (*_CONTAINER, *inner)
        case ("volumes" | "imagePullSecrets", *_):
            found = ("template", "spec", *inner)
        case ("serviceAccount",):
            found = ("template", "spec", "serviceAccountName")
        case ("idleTimeout",):
            found = ("idleTimeoutSeconds",)
    return (*at, *found)
