"""Converts the spec of a RayCluster into settings, as far as it has settings.

And a pod of the launcher's Kubernetes provider, or of Ray's first operator, into settings of a head or a worker group.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from core.nodes import GPU_RESOURCE, gpu_names
from core.yaml_reader.scalars import Rewritten
from kuberay.edits import WORKER_GROUP_DEFAULTS
from kuberay.offers import counted_by_autoscaler
from kuberay.ports import HEAD_PORTS
from stacks.commands.importing.reader import Reader, duration, has_content, is_noted_secret

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


def pod_settings(pod: Reader, container_name: str) -> dict[str, Any]:
    """The pod's `image`, `cpu`, `memory`, `gpus`, `gpuResource`, `env` and `podTemplate`, as far as they are set."""
    for key in ("apiVersion", "kind"):
        pod.at(key).use()
    spec = pod.mapping("spec")
    settings: dict[str, Any] = {}
    template: dict[str, Any] = {}
    if metadata := _metadata(pod.mapping("metadata")):
        template["metadata"] = metadata
    if rest := _spec(spec, container_name, settings):
        template["spec"] = rest
    if template:
        settings["podTemplate"] = template
    return settings


def _metadata(metadata: Reader) -> dict[str, Any]:
    for key in ("name", "generateName", "namespace"):
        metadata.at(key).note("KubeRay names its pods itself", "find them by the label ray.io/cluster")
    kept = {
        key: {
            str(name): part.use()
            for name, part in metadata.mapping(key).items()
            if not is_noted_secret(str(name), str(part.value), part, annotation=True)
        }
        for key in ("labels", "annotations")
    }
    return {key: values for key, values in kept.items() if values}


def _spec(spec: Reader, container_name: str, settings: dict[str, Any]) -> dict[str, Any]:
    for key in ("serviceAccountName", "serviceAccount"):
        spec.at(key).note("pods run as the tenant's account", "set serviceAccount if they need this one")
    if spec.text("restartPolicy") not in (None, "Never"):
        spec.at("restartPolicy").note("autoscaler v2 replaces pods, so they do not restart", "nothing to do")
    containers = spec.sequence("containers")
    rest = {
        str(key): part.use()
        for key, part in spec.items()
        if key not in ("containers", "serviceAccountName", "serviceAccount", "restartPolicy")
        and has_content(part.value)
    }
    if containers.value:
        others = [part.use() for _, part in containers.items()[1:]]
        first = _ray_container(containers.at(0), container_name, settings)
        if first or others:
            rest["containers"] = [{"name": container_name, **first}, *others]
    return rest


def _ray_container(container: Reader, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    container.at("name").note(f"KubeRay's container of Ray is {name} here", "rename it where a tool looks for it")
    for key in ("command", "args"):
        container.at(key).note("KubeRay starts Ray in the container", "set them in podTemplate if they do more")
    if image := container.text("image"):
        settings["image"] = image
    _resources(container, settings)
    _ports(container)
    env, plain = [], {}
    for _, variable in container.sequence("env").items():
        entry = variable.use()
        if not isinstance(entry, dict) or set(entry) != {"name", "value"}:
            env.append(entry)
        elif not is_noted_secret(str(entry["name"]), value := _written(entry["value"]), variable):
            plain[str(entry["name"])] = value
    if plain:
        settings["env"] = plain
    taken = ("name", "command", "args", "image", "resources", "ports", "env")
    rest = {str(key): part.use() for key, part in container.items() if key not in taken and has_content(part.value)}
    return {**rest, **({"env": env} if env else {})}


def _written(value: Any) -> str:
    """The value of a variable as the file has it; an empty one is an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    return value.written if isinstance(value, Rewritten) else "" if value is None else str(value)


def _resources(container: Reader, settings: dict[str, Any]) -> None:
    resources = container.mapping("resources")
    limits, requests = resources.mapping("limits"), resources.mapping("requests")
    names = gpu_names(dict.fromkeys(str(key) for part in (limits, requests) for key, _ in part.items()))
    resource = names[0] if len(names) == 1 else GPU_RESOURCE
    for key, setting in (("cpu", "cpu"), ("memory", "memory"), (resource, "gpus")):
        limit, request = limits.text(key), requests.text(key)
        amount = limit or request
        if amount is not None:
            settings[setting] = int(amount) if setting == "gpus" and amount.isdigit() else amount
            if setting == "gpus" and resource != GPU_RESOURCE and settings[setting] != 0:
                settings["gpuResource"] = resource
        if limit and request and limit != request:
            requests.log.note(
                (*requests.path, key),
                f"the request of {request} is lower than the limit of {limit}",
                f"the limit counts for both, so that no neighbour takes it; lower {setting} to pay for less",
            )


def _ports(container: Reader) -> None:
    for _, port in container.sequence("ports").items():
        if port.value.get("containerPort") in HEAD_PORTS.values() if isinstance(port.value, dict) else False:
            port.use()
        else:
            port.note("a port that KubeRay does not need", "name it in podTemplate if something else listens there")
