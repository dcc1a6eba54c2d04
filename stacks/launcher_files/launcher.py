"""Converts a file of Ray's cluster launcher (`ray up`) into a cluster of the stack file.

Node types are read in their current and their older forms. Keys that describe machines have no counterpart where Ray
runs in pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.nodes import GPU_RESOURCE
from core.problems import Path
from core.values import inside
from stacks.launcher_files.docker import image_of, pull_policy, run_options
from stacks.launcher_files.pods import pod_settings
from stacks.launcher_files.ray_start import RayStart, quoted, ray_start
from stacks.launcher_files.reader import (
    Answers,
    Imported,
    Note,
    Reader,
    RefusedError,
    bytes_quantity,
    cpus,
    dns_name,
    duration,
    number,
    of_groups,
    versions,
    whole_cpus,
)

RAYS_MAX_WORKERS = 2
"""Ray's default of `max_workers` (ray/autoscaler/aws/defaults.yaml)."""

_MANUAL = {"local", "manual"}
"""Providers with a list of machines instead of node types."""


@dataclass(frozen=True)
class NodeType:
    """A kind of machine, as `ray up` defines it."""

    name: str

    body: Reader
    """With `resources`, `labels`, `docker` and so on."""

    node_config: Reader
    """The configuration for the provider."""

    min_workers: int
    max_workers: int


@dataclass(frozen=True)
class NodeTypes:
    head: NodeType
    workers: tuple[NodeType, ...]


def _node_types(document: Reader) -> NodeTypes:
    """Reads them. Raises RefusedError if the head's type is not among them."""
    limit = document.whole("max_workers")
    least = document.whole("min_workers")
    if document.mapping("available_node_types").value:
        found = _current(document, limit, least)
    elif document.at("provider").text("type") in _MANUAL:
        found = _manual(document, limit, least)
    else:
        found = _legacy(document, limit, least)
    _note_the_sum(document, limit, found)
    return found


def _current(document: Reader, limit: int | None, least: int | None) -> NodeTypes:
    types = document.mapping("available_node_types")
    if least:
        document.at("min_workers").note("Ray ignores it beside available_node_types", "set minReplicas of a group")
    for key in ("head_node", "worker_nodes"):
        document.at(key).note("Ray ignores it beside available_node_types", "remove it")
    head_type = document.text("head_node_type")
    if head_type is None or head_type not in types:
        known = ", ".join(types.keys())
        raise RefusedError(
            Note(
                document.at("head_node_type").path,
                f"{head_type!r} is not in available_node_types",
                f"name one of {known}",
            )
        )
    names = types.keys()
    found = {name: _type(types, name, limit, 0 if name == head_type else None) for name in names}
    head = found.pop(head_type)
    # The head's type can be a type of workers, too.
    workers = ([head] if head.max_workers else []) + list(found.values())
    return NodeTypes(head, tuple(workers))


def _type(types: Reader, name: str, limit: int | None, default: int | None) -> NodeType:
    body = types.mapping(name)
    most = body.whole("max_workers")
    maximum = RAYS_MAX_WORKERS if limit is None else limit
    if most is None:
        most = maximum if default is None else default
    elif most > maximum:
        body.at("max_workers").note(f"the file's own max_workers is lower: {maximum}", "here it is that number")
    least = body.whole("min_workers") or 0
    return NodeType(name, body, body.mapping("node_config"), min(least, most), max(least, min(most, maximum)))


def _manual(document: Reader, limit: int | None, least: int | None) -> NodeTypes:
    for key in ("head_node", "worker_nodes"):
        document.at(key).note("Ray ignores it for machines of your own", "remove it")
    provider = document.mapping("provider")
    listed = "worker_ips" in provider
    count = len(provider.sequence("worker_ips").value) if listed else RAYS_MAX_WORKERS if limit is None else limit
    most = count if limit is None else min(limit, count)
    start = count if least is None and listed else least or 0
    nothing = document.at("available_node_types")
    return NodeTypes(
        NodeType("head", nothing, document.at("head_node"), 0, 0),
        (NodeType("workers", nothing, document.at("worker_nodes"), min(start, most), most),),
    )


def _legacy(document: Reader, limit: int | None, least: int | None) -> NodeTypes:
    head, workers = document.mapping("head_node"), document.mapping("worker_nodes")
    most = RAYS_MAX_WORKERS if limit is None else limit
    return NodeTypes(
        NodeType("head", head, head, 0, 0),
        (NodeType("workers", workers, workers, min(least or 0, most), most),) if most else (),
    )


def _note_the_sum(document: Reader, limit: int | None, found: NodeTypes) -> None:
    together = sum(each.max_workers for each in found.workers)
    if limit is not None and together > limit:
        document.log.note(
            document.at("max_workers").path,
            f"KubeRay has no limit of {limit} over all groups, and the groups' own add up to {together}",
            "lower maxReplicas of the groups, or let the namespace's quota limit them",
            *(("workerGroups", _group_name(each), "maxReplicas") for each in found.workers),
        )


_MACHINES = "the machines belong to the Kubernetes cluster"

TOP_LEVEL = {
    "auth": ("pods have no login by SSH", "use `kubectl exec`, and `ray job submit` for work"),
    "initialization_commands": ("they prepare a machine before Docker", "do it when the node's image is built"),
    "setup_commands": ("a pod starts from a finished image", "do it when the image is built, or in runtime_env"),
    "head_setup_commands": ("a pod starts from a finished image", "do it when the image is built, or in runtime_env"),
    "worker_setup_commands": ("a pod starts from a finished image", "do it when the image is built, or in runtime_env"),
    "file_mounts": (
        "no files are copied to pods",
        "put code in runtime_env.working_dir, and data on a volume (volumes, volumeMounts)",
    ),
    "cluster_synced_files": ("no files are copied between pods", "put them on a volume (volumes, volumeMounts)"),
    "file_mounts_sync_continuously": ("no files are copied to pods", "remove it"),
    "rsync_exclude": ("no files are copied to pods", "remove it; runtime_env has excludes"),
    "rsync_filter": ("no files are copied to pods", "remove it; runtime_env has excludes"),
    "metadata": ("Ray ignores it", "put it in labels or annotations"),
    "worker_default_node_type": ("Ray ignores it", "remove it"),
    "no_restart": ("Ray's launcher sets it for itself", "remove it"),
}
"""Keys of the file, why they have no counterpart, and what to do instead."""

PROVIDER = {
    "region": (_MACHINES, "choose nodes by a pool with the label topology.kubernetes.io/region"),
    "location": (_MACHINES, "choose nodes by a pool with the label topology.kubernetes.io/region"),
    "availability_zone": (_MACHINES, "choose nodes by a pool with the label topology.kubernetes.io/zone"),
    "head_ip": (_MACHINES, "join the machine to the Kubernetes cluster, and describe it under nodes"),
    "worker_ips": (_MACHINES, "join the machines to the Kubernetes cluster, and describe them under nodes"),
    "coordinator_address": (_MACHINES, "join its machines to the Kubernetes cluster, and describe them under nodes"),
    "security_group": (_MACHINES, "use NetworkPolicies"),
    "services": ("KubeRay creates the head's Service, <name>-head-svc", "keep other Services as manifests"),
    "autoscaler_service_account": ("the stack creates the tenant's account", "see rayDeployer"),
    "autoscaler_role": ("KubeRay creates the autoscaler's Role", "remove it"),
    "autoscaler_role_binding": ("KubeRay creates the autoscaler's RoleBinding", "remove it"),
}
"""Keys under `provider`. All its other keys describe machines, too."""

NODE_CONFIG = "describe the machines under nodes, and set what a pod needs in cpu, memory and gpus"


def _note_top_level(document: Reader) -> None:
    for key, (why, instead) in TOP_LEVEL.items():
        part = document.at(key)
        for each in [each for _, each in part.items()] or [part]:
            each.note(why, instead)


def _note_provider(provider: Reader) -> None:
    """Notes all keys of the provider except the namespace, which was used."""
    provider.at("type").use()
    for key, part in provider.items():
        if key in _RIGHTS:
            _note_rights(key, part)
        elif key not in ("type", "namespace"):
            part.note(*PROVIDER.get(str(key), (_MACHINES, "remove it, or do it where the nodes are created")))


_RIGHTS = {"IamInstanceProfile", "serviceAccounts", "msi_name", "msi_resource_group"}
"""Keys that give machines rights in the cloud: of AWS, Google Cloud and Azure."""


def _note_rights(key: str | int, part: Reader) -> None:
    part.note(
        f"{key} gives machines rights in the cloud, and pods get theirs from their ServiceAccount",
        "set serviceAccount to an account with these rights (docs/clouds.md, Rights in the cloud)",
        ("serviceAccount",),
    )


def _note_machine(node_config: Reader, of: Path) -> None:
    """Notes the description of a machine; older files have its `resources` in it. `of`: the place of its settings."""
    arm = "azure_arm_parameters"
    for key, part in [*(each for each in node_config.items() if each[0] != arm), *node_config.at(arm).items()]:
        if key in _RIGHTS:
            _note_rights(key, part)
        elif _is_spot(part):
            part.note(
                f"{key} asks for spot machines, and these pods run on any node",
                "describe the spot nodes as a pool with its taint under nodes, and set pool to its name",
                (*of, "pool"),
                (*of, "podTemplate"),
            )
        elif key != "resources":
            part.note(f"it describes a machine, and {_MACHINES}", NODE_CONFIG)


def _is_spot(part: Reader) -> bool:
    """Whether a part of a machine asks for a spot machine, as AWS, Google Cloud and Azure name it."""
    for path, value in inside(part.value, part.path):
        if (path[-1] == "preemptible" and value is True) or (isinstance(value, str) and value.lower() == "spot"):
            return True
    return False


_SIZE_OF_HEAD = {"cpu": "2", "memory": "16Gi"}
"""The defaults of `head`, written out where the file has no amounts, so that a person sees what to decide."""

MEMORY_PER_CPU = 4
"""Gi of memory per CPU of a worker if the file sets none: the ratio of general-purpose machines."""

_KUBERNETES = {"kubernetes", "kuberay"}


def is_launcher_file(document: Any) -> bool:
    return (
        isinstance(document, Mapping) and "kind" not in document and bool({"provider", "cluster_name"} & set(document))
    )


def from_launcher(document: Mapping[str, Any], answers: Answers | None = None) -> Imported:
    """The cluster. Raises RefusedError if the file is invalid, or lacks required values."""
    reader = Reader(document)
    imported = read_launcher(reader, answers or Answers())
    return replace(imported, notes=reader.log.finish(document))


def read_launcher(document: Reader, answers: Answers) -> Imported:
    """As `from_launcher`, for a part of a document. Unused keys are not noted yet."""
    cluster: dict[str, Any] = {"name": _name(document, answers)}
    provider = document.mapping("provider")
    namespace = provider.text("namespace")
    types = _node_types(document)
    docker = document.mapping("docker")
    head_start, worker_start = (
        ray_start(document.sequence(f"{of}_start_ray_commands"), place)
        for of, place in (("head", _HEAD), ("worker", _GROUPS))
    )
    # SkyPilot and others have providers of their own, whose node types are pods, too.
    pods = provider.text("type") in _KUBERNETES or "containers" in types.head.node_config.at("spec")
    head = _head(types.head, head_start, pods)
    groups = [_group(each, worker_start, pods) for each in types.workers]
    image = image_of(docker, "head") or head.get("image")
    worker_image = image_of(docker, "worker")
    cluster |= versions(image, answers, document.log, document.at("docker").path)
    cluster |= pull_policy(docker) | _autoscaling(document)
    head.pop("image", None)
    env = run_options(docker, "run_options")
    head_env = run_options(docker, "head_run_options", _HEAD)
    worker_env = run_options(docker, "worker_run_options", _GROUPS)
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
    _note_provider(provider)
    _note_top_level(document)
    placed: list[tuple[Path, NodeType]] = [(("head",), types.head)]
    placed += [(("workerGroups", index), each) for index, each in enumerate(types.workers)]
    places: dict[Path, Path] = {(key,): place for key, place in _PLACES.items()}
    places["autoScalingMode",] = ("upscaling_speed" if "upscaling_speed" in document else "autoscaling_mode",)
    for path, each in placed:
        places |= _places(path, each, pods)
    return Imported(cluster, namespace, (), places=places)


_HEAD: Path = ("head",)
_GROUPS: Path = ("workerGroups",)
"""Places of the cluster."""

_PLACES: dict[str, Path] = {
    **dict.fromkeys(("rayVersion", "image", "verifyImageTag"), ("docker", "image")),
    **dict.fromkeys(("imagePullPolicy", "env"), ("docker",)),
    "idleTimeout": ("idle_timeout_minutes",),
    "targetUtilization": ("target_utilization_fraction",),
}
"""Where the file has settings of the cluster."""


def _places(path: Path, node_type: NodeType, pods: bool) -> dict[Path, Path]:
    """Where the file has settings of the head or a worker group, which are at `path`."""
    body, config = node_type.body.path, node_type.node_config.path
    amounts: Path = (*config, "spec", "containers", 0, "resources") if pods else (*body, "resources")
    return {
        path: body,
        (*path, "podTemplate"): config,
        (*path, "minReplicas"): (*body, "min_workers"),
        (*path, "maxReplicas"): (*body, "max_workers"),
        **{(*path, key): (*amounts, *(() if pods else (name,))) for key, name in _AMOUNTS.items()},
    }


_AMOUNTS = {"cpu": "CPU", "memory": "memory", "gpus": "GPU"}


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
                ("autoScalingMode",),
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
    settings = _node(node_type, start, pods, "ray-head", _HEAD)
    settings.pop("idleTimeout", None)
    gpus, resource = settings.pop("gpus", None), settings.pop("gpuResource", GPU_RESOURCE)
    if gpus:
        container = {
            "name": "ray-head",
            "resources": {kind: {resource: gpus} for kind in ("requests", "limits")},
        }
        spec = settings.setdefault("podTemplate", {}).setdefault("spec", {})
        spec.setdefault("containers", [{"name": "ray-head"}])[0].update(container)
        settings.setdefault("rayStartParams", {}).setdefault("num-gpus", number(float(gpus)))
    _tasks_on_the_head(node_type, settings)
    missing = {key: amount for key, amount in _SIZE_OF_HEAD.items() if key not in settings}
    if missing:
        keys, given = " and ".join(missing), " and ".join(" ".join(each) for each in missing.items())
        node_type.body.log.advise(
            node_type.node_config.path or node_type.body.path,
            f"the file does not set the {keys} of the head's machine",
            f"it has the default here ({given}); set {keys} of the head",
            *((*_HEAD, key) for key in missing),
        )
    return settings | missing


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
            (*_HEAD, "rayStartParams", "num-cpus"),
        )
    elif params["num-cpus"] != "0":
        node_type.body.log.advise(
            node_type.body.path,
            "tasks run on the head, as before",
            "remove num-cpus, so that no task can fill its memory and take the cluster down",
            (*_HEAD, "rayStartParams", "num-cpus"),
        )
    if not params:
        del settings["rayStartParams"]


def _group_name(node_type: NodeType) -> str:
    return dns_name(node_type.name, 50, "workers")


def _group(node_type: NodeType, start: RayStart, pods: bool) -> dict[str, Any]:
    name = _group_name(node_type)
    place: Path = (*_GROUPS, name)
    if name != node_type.name:
        node_type.body.log.advise(
            node_type.body.path, f"{node_type.name!r} is not a valid name of a worker group", f"it is {name!r} here"
        )
    settings = _node(node_type, start, pods, "ray-worker", place)
    if "cpu" not in settings:
        settings |= {"cpu": "1", "memory": settings.get("memory", f"{MEMORY_PER_CPU}Gi")}
        node_type.body.log.advise(
            node_type.node_config.path or node_type.body.path,
            f"the file does not set the resources of a machine of {node_type.name!r}",
            "set cpu, memory and gpus of a worker",
            (*place, "cpu"),
        )
    elif "memory" not in settings:
        settings["memory"] = f"{max(1, round(cpus(settings['cpu']) * MEMORY_PER_CPU))}Gi"
        node_type.body.log.advise(
            node_type.body.path,
            f"the file does not set the memory of a machine of {node_type.name!r}",
            f"it is {MEMORY_PER_CPU}Gi for each CPU here; set memory",
            (*place, "memory"),
        )
    bounds = {"minReplicas": node_type.min_workers, "maxReplicas": node_type.max_workers}
    return {"groupName": name, **bounds, **settings}


def _node(node_type: NodeType, start: RayStart, pods: bool, container: str, of: Path) -> dict[str, Any]:
    """The settings that head and worker groups share. `of`: their place in the cluster."""
    settings: dict[str, Any] = {}
    if pods:
        settings |= pod_settings(node_type.node_config, container, of)
    else:
        _note_machine(node_type.node_config, of)
    body = node_type.body
    params = dict(start.params)
    _resources(body.mapping("resources"), settings, params, of)
    labels = {**start.labels, **{str(key): str(part.use()) for key, part in body.mapping("labels").items()}}
    if labels:
        settings["labels"] = labels
    docker = body.mapping("docker")
    if image := docker.text("worker_image"):
        settings["image"] = image
    _add_env(settings, {**start.env, **run_options(docker, "worker_run_options", of)})
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


def _resources(resources: Reader, settings: dict[str, Any], params: dict[str, str], of: Path) -> None:
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
                instead = "set google.com/tpu in podTemplate, and its nodeSelector"
                part.note("a pod gets TPUs by its limits", instead, (*of, "podTemplate"))
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
