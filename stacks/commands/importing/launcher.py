"""Converts a file of Ray's cluster launcher (`ray up`) into a cluster of the stack file."""

from collections.abc import Mapping
from typing import Any

from core.nodes import GPU_RESOURCE
from stacks.commands.importing.cluster_spec import pod_settings
from stacks.commands.importing.launcher_parts import (
    NodeType,
    image_of,
    node_types,
    note_machine,
    note_provider,
    note_top_level,
    pull_policy,
    run_options,
)
from stacks.commands.importing.names import (
    bytes_quantity,
    cpus,
    dns_name,
    duration,
    number,
    of_groups,
    versions,
    whole_cpus,
)
from stacks.commands.importing.ray_start import RayStart, quoted, ray_start
from stacks.commands.importing.reader import Answers, Imported, Reader

MEMORY_PER_CPU = 4
"""Gi of memory per CPU of a worker if the file sets none: the ratio of general-purpose machines."""

_KUBERNETES = {"kubernetes", "kuberay"}


def is_launcher_file(document: Any) -> bool:
    """Whether a document is a file of the cluster launcher."""
    return (
        isinstance(document, Mapping) and "kind" not in document and bool({"provider", "cluster_name"} & set(document))
    )


def from_launcher(document: Mapping[str, Any], answers: Answers | None = None) -> Imported:
    """The cluster. Raises RefusedError if the file is invalid, or lacks required values."""
    reader = Reader(document)
    imported = read_launcher(reader, answers or Answers())
    return Imported(imported.cluster, imported.namespace, reader.log.finish(document))


def read_launcher(document: Reader, answers: Answers) -> Imported:
    """As `from_launcher`, for a part of a document. Unused keys are not noted yet."""
    cluster: dict[str, Any] = {"name": _name(document, answers)}
    provider = document.mapping("provider")
    namespace = provider.text("namespace")
    types = node_types(document)
    docker = document.mapping("docker")
    head_start, worker_start = (
        ray_start(document.sequence(key)) for key in ("head_start_ray_commands", "worker_start_ray_commands")
    )
    pods = provider.text("type") in _KUBERNETES
    head = _head(types.head, head_start, pods)
    groups = [_group(each, worker_start, pods, types.head.name) for each in types.workers]
    image = image_of(docker, "head") or head.get("image")
    worker_image = image_of(docker, "worker")
    cluster |= versions(image, answers, document.log, document.at("docker").path)
    cluster |= pull_policy(docker) | _autoscaling(document)
    head.pop("image", None)
    env = run_options(docker, "run_options")
    head_env, worker_env = run_options(docker, "head_run_options"), run_options(docker, "worker_run_options")
    _add_env(head, head_env)
    for group in groups:
        _add_env(group, worker_env)
        group.setdefault("image", worker_image or cluster["image"])
        if group["image"] == cluster["image"]:
            del group["image"]
    _initial(document, groups)
    if env:
        cluster["env"] = env
    if head:
        cluster["head"] = head
    if groups:
        cluster["workerGroups"] = groups
    of_groups(cluster, document.log, document.at("docker").path)
    note_provider(provider)
    note_top_level(document)
    return Imported(cluster, namespace, ())


def _name(document: Reader, answers: Answers) -> str:
    configured = document.text("cluster_name")
    name = answers.name or dns_name(configured or "ray", 53, "ray")
    if configured and answers.name and name != configured:
        document.at("cluster_name").note("another name is set for the import", f"it is {name!r} here")
    elif configured and name != configured:
        document.at("cluster_name").note(f"{configured!r} is not a valid name of a RayCluster", f"it is {name!r} here")
    return name


def _autoscaling(document: Reader) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    minutes = document.number("idle_timeout_minutes")
    if minutes is not None:
        settings["idleTimeout"] = duration(minutes * 60)
    speed, mode = document.number("upscaling_speed"), document.text("autoscaling_mode")
    fraction = document.number("target_utilization_fraction")
    # The order in which Ray reads them (ray/autoscaler/_private/autoscaler.py).
    if speed:
        settings["autoScalingMode"] = "conservative" if speed <= 1 else "default"
        if speed != 1:
            document.at("upscaling_speed").note(
                "KubeRay has two speeds: it adds as many workers as exist, or all at once",
                f"it is {settings['autoScalingMode']} here",
            )
    elif mode == "aggressive":
        settings["autoScalingMode"] = "aggressive"
    elif fraction and 0.01 <= fraction <= 1:
        settings["targetUtilization"] = round(fraction * 100)
    elif mode not in (None, "default"):
        document.at("autoscaling_mode").refuse("default or aggressive")
    if fraction and "targetUtilization" not in settings:
        document.at("target_utilization_fraction").note("Ray ignores it here", "remove it")
    return settings


def _head(node_type: NodeType, start: RayStart, pods: bool) -> dict[str, Any]:
    settings = _node(node_type, start, pods, "ray-head")
    settings.pop("idleTimeout", None)
    gpus = settings.pop("gpus", None)
    if gpus:
        container = {
            "name": "ray-head",
            "resources": {kind: {GPU_RESOURCE: gpus} for kind in ("requests", "limits")},
        }
        spec = settings.setdefault("podTemplate", {}).setdefault("spec", {})
        spec.setdefault("containers", [{"name": "ray-head"}])[0].update(container)
        settings.setdefault("rayStartParams", {}).setdefault("num-gpus", number(float(gpus)))
    _tasks_on_the_head(node_type, settings)
    return settings


def _tasks_on_the_head(node_type: NodeType, settings: dict[str, Any]) -> None:
    """The launcher's head runs tasks like every node; here no task runs on the head unless it is set."""
    params = settings.setdefault("rayStartParams", {})
    if "cpu" in settings:
        params.setdefault("num-cpus", whole_cpus(settings["cpu"]))
    if "num-cpus" not in params:
        node_type.body.log.advise(
            node_type.body.path,
            "tasks ran on the head; here none do",
            "add its CPUs to the workers, or set head.rayStartParams.num-cpus",
            at=("head",),
        )
    elif params["num-cpus"] != "0":
        node_type.body.log.advise(
            node_type.body.path,
            "tasks run on the head, as before",
            "remove num-cpus, so that no task can fill its memory and take the cluster down",
            at=("head", "rayStartParams", "num-cpus"),
        )
    if not params:
        del settings["rayStartParams"]


def _group(node_type: NodeType, start: RayStart, pods: bool, head: str) -> dict[str, Any]:
    name = dns_name(node_type.name, 50, "workers")
    if name != node_type.name:
        node_type.body.log.advise(
            node_type.body.path, f"{node_type.name!r} is not a valid name of a worker group", f"it is {name!r} here"
        )
    settings = _node(node_type, start, pods, "ray-worker")
    if "cpu" not in settings:
        settings |= {"cpu": "1", "memory": settings.get("memory", f"{MEMORY_PER_CPU}Gi")}
        node_type.body.log.advise(
            node_type.node_config.path or node_type.body.path,
            f"the file does not set the resources of a machine of {node_type.name!r}",
            "set cpu, memory and gpus of a worker",
            at=("workerGroups", name, "cpu"),
        )
    elif "memory" not in settings:
        settings["memory"] = f"{max(1, round(cpus(settings['cpu']) * MEMORY_PER_CPU))}Gi"
        node_type.body.log.advise(
            node_type.body.path,
            f"the file does not set the memory of a machine of {node_type.name!r}",
            f"it is {MEMORY_PER_CPU}Gi for each CPU here; set memory",
            at=("workerGroups", name, "memory"),
        )
    bounds = {"minReplicas": node_type.min_workers, "maxReplicas": node_type.max_workers}
    return {"groupName": name, **bounds, **settings}


def _node(node_type: NodeType, start: RayStart, pods: bool, container: str) -> dict[str, Any]:
    """The settings that head and worker groups share."""
    settings: dict[str, Any] = {}
    if pods:
        settings |= pod_settings(node_type.node_config, container)
    else:
        note_machine(node_type.node_config)
    body = node_type.body
    params = dict(start.params)
    _resources(body.mapping("resources"), settings, params)
    labels = {**start.labels, **{str(key): str(part.use()) for key, part in body.mapping("labels").items()}}
    if labels:
        settings["labels"] = labels
    docker = body.mapping("docker")
    if image := docker.text("worker_image"):
        settings["image"] = image
    _add_env(settings, {**start.env, **run_options(docker, "worker_run_options")})
    docker.at("pull_before_run").note("one policy applies to all pods", "see imagePullPolicy")
    seconds = body.number("idle_timeout_s")
    if seconds is not None:
        settings["idleTimeout"] = duration(seconds)
    body.at("priority").note("KubeRay before 1.7 has no priority of groups", "Ray takes the smallest that fits")
    for key in ("initialization_commands", "worker_setup_commands"):
        body.at(key).note("a pod starts from a finished image", "do it when the image is built, or in runtime_env")
    if params:
        settings["rayStartParams"] = params
    return settings


def _resources(resources: Reader, settings: dict[str, Any], params: dict[str, str]) -> None:
    custom: dict[str, Any] = {}
    for key, part in resources.items():
        amount = resources.number(key)
        if amount is None:
            continue
        match key:
            case "CPU" if amount == 0:
                params["num-cpus"] = "0"
            case "CPU":
                settings["cpu"] = number(amount)
            case "GPU":
                settings |= {"gpus": int(amount)} if amount else {}
            case "memory":
                settings["memory"] = bytes_quantity(amount)
            case "object_store_memory":
                params["object-store-memory"] = number(amount)
            case "TPU":
                part.note("a pod gets TPUs by its limits", "set google.com/tpu in podTemplate, and its nodeSelector")
            case _:
                custom[str(key)] = int(amount) if amount == int(amount) else amount
    if custom:
        params["resources"] = quoted(custom)


def _initial(document: Reader, groups: list[dict[str, Any]]) -> None:
    initial = document.whole("initial_workers")
    if not initial:
        return
    if len(groups) == 1:
        groups[0]["replicas"] = min(max(initial, groups[0]["minReplicas"]), groups[0]["maxReplicas"])
    else:
        document.at("initial_workers").note("the stack file has no worker group, or several", "set replicas of a group")


def _add_env(settings: dict[str, Any], env: Mapping[str, str]) -> None:
    if env:
        settings["env"] = {**settings.get("env", {}), **env}
