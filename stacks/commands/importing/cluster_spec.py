"""Converts the spec of a RayCluster into settings, as far as it has settings."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.nodes import GPU_RESOURCE, gpu_names
from kuberay.edits import WORKER_GROUP_DEFAULTS
from kuberay.offers import counted_by_autoscaler
from stacks.launcher_files.reader import duration

_MODES = {"Default": "default", "Aggressive": "aggressive", "Conservative": "conservative"}


def settings_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, without name and versions, of a spec with its defaults. They need not render to exactly this
    spec."""
    head, groups = _mapping(spec, "headGroupSpec"), list(_items(spec, "workerGroupSpecs"))
    pods = [_pod(group) for group in (head, *groups)]
    containers = [_container(pod) for pod in pods]
    image = containers[0].get("image")
    settings = {
        "imagePullPolicy": _common(containers, "imagePullPolicy"),
        "imagePullSecrets": [each["name"] for each in _common(pods, "imagePullSecrets") or [] if "name" in each],
        "serviceAccount": _common(pods, "serviceAccountName"),
        "authOptions": spec.get("authOptions"),
        **_autoscaling(spec),
        "volumes": _common(pods, "volumes"),
        "volumeMounts": _common(containers, "volumeMounts"),
        "head": _without_none(
            {
                # Covers both of KubeRay's fields: a head that is exposed outside the cluster must be set explicitly.
                "serviceType": head.get("serviceType") or _mapping(_mapping(head, "headService"), "spec").get("type"),
                **{key: value for key, value in _group(head).items() if key not in ("gpus", "gpuResource")},
            }
        ),
        "workerGroups": [
            _without_none({**_bounds(group), **_image(group, image), **_group(group)}) for group in groups
        ],
    }
    return _without_none(settings)


def image_of(spec: Mapping[str, Any]) -> str | None:
    """The image of the head's Ray container."""
    image = _container(_pod(_mapping(spec, "headGroupSpec"))).get("image")
    return image if isinstance(image, str) else None


def _autoscaling(spec: Mapping[str, Any]) -> dict[str, Any]:
    if spec.get("enableInTreeAutoscaling") is not True:
        return {"autoscaling": False}
    options = _mapping(spec, "autoscalerOptions")
    seconds = options.get("idleTimeoutSeconds")
    return {
        "autoScalingMode": _MODES.get(str(options.get("upscalingMode"))),
        "idleTimeout": duration(seconds) if isinstance(seconds, int) and seconds > 0 else None,
    }


def _bounds(group: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a worker group besides its pods, without values that the API server would set as defaults."""
    seconds = group.get("idleTimeoutSeconds")
    return {
        "groupName": group.get("groupName"),
        "replicas": group.get("replicas") or None,
        "minReplicas": group.get("minReplicas") or None,
        "maxReplicas": _unless_default(group, "maxReplicas"),
        "numOfHosts": _unless_default(group, "numOfHosts"),
        "idleTimeout": duration(seconds) if isinstance(seconds, int) and seconds > 0 else None,
    }


def _unless_default(group: Mapping[str, Any], key: str) -> Any:
    return group.get(key) if group.get(key) != WORKER_GROUP_DEFAULTS[key] else None


def _image(group: Mapping[str, Any], heads: Any) -> dict[str, Any]:
    image = _container(_pod(group)).get("image")
    return {"image": image if image != heads else None}


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that head and worker groups share."""
    container = _container(_pod(group))
    resources = _mapping(container, "resources")
    amounts = {**_mapping(resources, "requests"), **_mapping(resources, "limits")}
    params = _mapping(group, "rayStartParams")
    # Of others the rendered flags would have more than the manifest.
    counted = {"num-gpus", "resources"} & params.keys()
    names = [name for name in gpu_names(amounts) if counted or counted_by_autoscaler(name)]
    resource = names[0] if len(names) == 1 else GPU_RESOURCE
    gpus = str(amounts.get(resource, ""))
    return {
        "cpu": amounts.get("cpu"),
        "memory": amounts.get("memory"),
        "gpus": int(gpus) if gpus.isdigit() else None,
        "gpuResource": resource if resource != GPU_RESOURCE and gpus.isdigit() and int(gpus) else None,
        "env": {
            each["name"]: each["value"]
            for each in _items(container, "env")
            if set(each) == {"name", "value"} and isinstance(each["value"], str)
        },
        "rayStartParams": dict(params),
        "labels": dict(_mapping(group, "labels")),
    }


def _pod(group: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(_mapping(group, "template"), "spec")


def _container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first container, which is Ray's."""
    return next(_items(pod, "containers"), {})


def _common(parts: list[Mapping[str, Any]], key: str) -> Any:
    """The value of all parts, None if they differ."""
    values = [part.get(key) for part in parts]
    return values[0] if all(value == values[0] for value in values) else None


def _mapping(part: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = part.get(key)
    return value if isinstance(value, Mapping) else {}


def _items(part: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    value = part.get(key)
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else iter(())


def _without_none(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value not in (None, {}, [])}
