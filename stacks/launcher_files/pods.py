"""Converts a pod of the launcher's Kubernetes provider, or of Ray's first operator, into settings of a head or a worker
group."""

from typing import Any

from core.nodes import GPU_RESOURCE, gpu_names
from core.problems import Path
from core.yaml_reader.scalars import Rewritten
from kuberay.ports import HEAD_PORTS
from stacks.launcher_files.reader import Reader, has_content, is_noted_secret


def pod_settings(pod: Reader, container_name: str, of: Path) -> dict[str, Any]:
    """The pod's `image`, `cpu`, `memory`, `gpus`, `gpuResource`, `env` and `podTemplate`, as far as they are set.

    `of`: the place of these settings in the cluster.
    """
    for key in ("apiVersion", "kind"):
        pod.at(key).use()
    spec = pod.mapping("spec")
    settings: dict[str, Any] = {}
    template: dict[str, Any] = {}
    if metadata := _metadata(pod.mapping("metadata")):
        template["metadata"] = metadata
    if rest := _spec(spec, container_name, settings, of):
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


def _spec(spec: Reader, container_name: str, settings: dict[str, Any], of: Path) -> dict[str, Any]:
    for key in ("serviceAccountName", "serviceAccount"):
        why, instead = "pods run as the tenant's account", "set serviceAccount if they need this one"
        spec.at(key).note(why, instead, ("serviceAccount",))
    spec.at("restartPolicy").use()  # autoscaler v2 replaces pods, so they do not restart
    containers = spec.sequence("containers")
    rest = {
        str(key): part.use()
        for key, part in spec.items()
        if key not in ("containers", "serviceAccountName", "serviceAccount", "restartPolicy")
        and has_content(part.value)
    }
    if containers.value:
        others = [part.use() for _, part in containers.items()[1:]]
        first = _ray_container(containers.at(0), container_name, settings, of)
        if first or others:
            rest["containers"] = [{"name": container_name, **first}, *others]
    return rest


def _ray_container(container: Reader, name: str, settings: dict[str, Any], of: Path) -> dict[str, Any]:
    container.at("name").note(f"KubeRay's container of Ray is {name} here", "rename it where a tool looks for it")
    for key in ("command", "args"):
        container.at(key).note("KubeRay starts Ray in the container", "set them in podTemplate if they do more")
    if image := container.text("image"):
        settings["image"] = image
    _resources(container, settings, of)
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


def _resources(container: Reader, settings: dict[str, Any], of: Path) -> None:
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
                (*of, setting),
            )


def _ports(container: Reader) -> None:
    for _, port in container.sequence("ports").items():
        if port.value.get("containerPort") in HEAD_PORTS.values() if isinstance(port.value, dict) else False:
            port.use()
        else:
            port.note("a port that KubeRay does not need", "name it in podTemplate if something else listens there")
