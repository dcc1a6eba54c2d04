"""Maps a part of a rendered RayCluster to its setting, so that a problem is reported where the author can fix it."""

from collections.abc import Iterator, Mapping
from typing import Any

from components.ray_cluster.settings import RayClusterSettings
from components.ray_cluster.worker_groups import WorkerGroup, all_groups
from core.nodes import NodePool
from core.problems import Path
from core.strategic_merge import part_of, place_of

_NUMBERS = {
    "minReplicas": "minWorkers",
    "maxReplicas": "maxWorkers",
    "replicas": "initialWorkers",
}
_AMOUNTS = {"cpu", "memory"}
_PLACEMENT = {"nodeSelector", "affinity", "tolerations"}


def setting_at(settings: RayClusterSettings, pools: tuple[NodePool, ...], spec: Mapping[str, Any], path: Path) -> Path:
    """The path in the cluster's settings that the part of its body at `path` comes from; `()` for the cluster itself.

    `spec`: the spec of the body, as `cluster_spec` renders it from the settings. If several parts are merged there, the
    last one that sets the value counts. The path is cut to what is set.
    """
    configured = settings.model_dump(by_alias=True, exclude_unset=True)
    match path:
        case ("metadata", "name", *_):
            return ("name",)
        case ("metadata", "labels" | "annotations", *_):
            return cut(configured, path[1:])
        case ("spec", _, *_):
            return _of_spec(settings, configured, all_groups(settings, pools), spec, path[1:])
    return ()


def _of_spec(
    settings: RayClusterSettings, configured: Mapping[str, Any], groups: tuple[WorkerGroup, ...], spec: Any, path: Path
) -> Path:
    overridden, decides = place_of(settings.overrides, spec, path)
    if decides:
        return ("overrides", *overridden)
    derived, _ = place_of(_plan(groups), spec, path[:2])
    group: WorkerGroup | None = None
    match derived:
        case ("workerGroupSpecs", int(index)):
            group, part, rest = groups[index], part_of(spec, "workerGroupSpecs", path[1]), path[2:]
        case ("headGroupSpec",):
            part, rest = part_of(spec, "headGroupSpec"), path[1:]
        case _:
            # A group that exists only in overrides, or a field of the spec itself.
            setting = cut(configured, _of_cluster(configured, path))
            return ("overrides", *overridden) if len(overridden) > 1 or (overridden and not setting) else setting
    if rest[:1] == ("template",):
        templates = group.pod_templates if group else ((("head", "podTemplate"), settings.head.pod_template),)
        for place, template in reversed(templates):
            found, decides = place_of(template, part_of(part, "template"), rest[1:])
            if decides and found:
                return (*place, *found)
    return _first_set(configured, *_of_storage(settings, rest), *_of_group(group, part, rest))


def _plan(groups: tuple[WorkerGroup, ...]) -> dict[str, Any]:
    """The groups of a spec without overrides."""
    return {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": group.name} for group in groups]}


def _of_cluster(configured: Mapping[str, Any], path: Path) -> Path:
    match path:
        case ("rayVersion", *_):
            return ("rayVersion",)
        case ("authOptions", *_):
            return path
        case ("autoscalerOptions", "idleTimeoutSeconds"):
            return _first_set(configured, ("idleTimeoutMinutes",), ("idleTimeout",))
        case ("autoscalerOptions", "upscalingMode"):
            return _first_set(configured, ("targetUtilization",), ("autoScalingMode",))
        case ("autoscalerOptions", "imagePullPolicy"):
            return ("imagePullPolicy",)
        case ("enableInTreeAutoscaling" | "autoscalerOptions", *_):
            return _first_set(configured, ("autoScalingMode",), ("autoscaling",))
    return ()


def _of_group(group: WorkerGroup | None, part: Any, path: Path) -> tuple[Path, ...]:
    """The settings that may set a part of a group, the most specific first. `group`: None for the head."""
    own: Path = group.path if group else ("head",)
    shared = own[:2]
    match path:
        case ("groupName", *_):
            return ((*own, "name"), (*own, "groupName"), own)
        case (str(number), *_) if number in _NUMBERS:
            return ((_NUMBERS[number],), (*own, number), own)
        case ("idleTimeoutSeconds", *_):
            return ((*own, "idleTimeout"), own)
        case ("serviceType", *_):
            return ((*own, "serviceType"), own)
        case ("numOfHosts" | "labels" | "rayStartParams", *_):
            return ((*shared, *path), shared)
        case ("template", "metadata", "labels", *_):
            return (path[2:], own)
        case ("template", "spec", *rest):
            return _of_pod(own, part_of(part, "template"), tuple(rest))
    return (own,)


def _of_storage(settings: RayClusterSettings, path: Path) -> Iterator[Path]:
    """The mounts of the tenant's storage that a volume or mount of a group comes from: those after its own ones."""
    match path:
        case ("template", "spec", "containers", 0, "volumeMounts", int(index), *rest):
            if 0 <= (at := index - len(settings.volume_mounts)) < len(settings.storage):
                yield from (("storage", at, *rest), ("storage", at))
        case ("template", "spec", "volumes", int(index), *_):
            names = list(dict.fromkeys(each.name for each in settings.storage))
            if 0 <= (of := index - len(settings.volumes)) < len(names):
                yield "storage", [each.name for each in settings.storage].index(names[of]), "name"


def _of_pod(own: Path, template: Any, path: Path) -> tuple[Path, ...]:
    shared = own[:2]
    match path:
        case ("containers", 0, "image"):
            return ((*shared, "image"), ("image",))
        case ("containers", 0, "imagePullPolicy"):
            return (("imagePullPolicy",), own)
        case ("containers", 0, "env", int(index), *_):
            name = str(part_of(template, "spec", "containers", 0, "env", index, "name"))
            return ((*shared, "env", name), ("env", name), own)
        case ("containers", 0, "resources", _, str(resource), *_) if resource in _AMOUNTS or "/" in resource:
            return ((*own, resource if resource in _AMOUNTS else "gpus"), (*shared, "pool"), own)
        case ("containers", 0, "volumeMounts", *_):
            return (path[2:], own)
        case ("volumes", *_):
            return (path, own)
        case ("imagePullSecrets", index, *_):
            return (("imagePullSecrets", index), own)
        case ("serviceAccountName", *_):
            return (("serviceAccount",), own)
        case (str(field), *_) if field in _PLACEMENT:
            return ((*shared, "pool"), own)
    return (own,)


def _first_set(configured: Mapping[str, Any], *paths: Path) -> Path:
    """The first path that is set in full; if none is, the part of the last path that is set."""
    return next((path for path in paths if cut(configured, path) == path), cut(configured, paths[-1]))


def cut(configured: Any, path: Path) -> Path:
    """The part of a path that is set in these settings."""
    for length, step in enumerate(path):
        inside = step < len(configured) if isinstance(step, int) and isinstance(configured, list | tuple) else False
        if not (inside or (isinstance(configured, Mapping) and step in configured)):
            return path[:length]
        configured = configured[step]
    return path
