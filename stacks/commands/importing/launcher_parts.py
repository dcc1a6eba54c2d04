"""The parts of a cluster launcher file: node types, the `docker` section, and keys without a counterpart.

Node types are read in their current and their older forms. Keys that describe machines have no counterpart where Ray
runs in pods.
"""

import shlex
from dataclasses import dataclass
from typing import Any

from stacks.commands.importing.names import is_noted_secret
from stacks.commands.importing.reader import Note, Reader, RefusedError

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
    """The node types of the head and of the workers."""

    head: NodeType
    workers: tuple[NodeType, ...]


def node_types(document: Reader) -> NodeTypes:
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
    greatest = RAYS_MAX_WORKERS if limit is None else limit
    if most is None:
        most = greatest if default is None else default
    elif most > greatest:
        body.at("max_workers").note(f"the file's own max_workers is lower: {greatest}", "here it is that number")
    least = body.whole("min_workers") or 0
    return NodeType(name, body, body.mapping("node_config"), min(least, most), max(least, min(most, greatest)))


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
        )


_ENV = ("-e", "--env")

_OPTIONS = {
    "--shm-size": "KubeRay gives each pod a /dev/shm of its memory; nothing to do",
    "--gpus": "set gpus; the device plugin passes them to the pod",
    "--runtime": "set runtimeClassName in podTemplate",
    "--ulimit": "raise it in the container runtime of the nodes",
    "--privileged": "set securityContext in podTemplate, if it is necessary",
    "--cap-add": "set securityContext.capabilities in podTemplate, if it is necessary",
    "--network": "pods have addresses of their own; nothing to do",
    "--net": "pods have addresses of their own; nothing to do",
    "--volume": "use volumes and volumeMounts",
    "-v": "use volumes and volumeMounts",
    "--mount": "use volumes and volumeMounts",
    "-p": "KubeRay creates the head's Service; nothing to do",
    "--rm": "Kubernetes removes pods; nothing to do",
}


def image_of(docker: Reader, which: str) -> str | None:
    """The image for `head` or `worker`."""
    special, common = docker.text(f"{which}_image"), docker.text("image")
    return special or common


def run_options(docker: Reader, key: str) -> dict[str, str]:
    """Environment variables that options of `docker run` set; the other options are noted.

    The launcher joins all texts with spaces (ray/autoscaler/_private/docker.py: docker_start_cmds).
    """
    env: dict[str, str] = {}
    for option, value, part in _options(docker.sequence(key)):
        name, equals, content = value.partition("=")
        if option not in _ENV:
            part.note(
                f"{option} is an option of docker run",
                _OPTIONS.get(option, "set its effect in podTemplate, as in a pod's spec"),
            )
        elif not equals or "$" in content:
            part.note(f"{name} gets its value on the machine where the launcher runs", "set it in env")
        elif not is_noted_secret(name, content, part):
            env[name] = content
    return env


def _options(texts: Reader) -> list[tuple[str, str, Reader]]:
    """The options of `docker run`, each with its value and the text that begins it."""
    found: list[tuple[str, str, Reader]] = []
    for index, part in texts.items():
        text = texts.text(index) or ""
        try:
            words = shlex.split(text)
        except ValueError:
            part.note("a quote is not closed", "correct it")
            continue
        for word in words:
            if word.startswith("--"):
                option, _, value = word.partition("=")
                found.append((option, value, part))
            elif word.startswith("-"):
                found.append((word[:2], word[2:].removeprefix("="), part))
            elif found and not found[-1][1]:
                found[-1] = (found[-1][0], word, found[-1][2])
            else:
                part.note("it is not an option of docker run", "remove it")
    return found


def pull_policy(docker: Reader) -> dict[str, Any]:
    """`imagePullPolicy`, if the section sets it; the rest of the section is noted."""
    always = docker.at("pull_before_run")
    docker.at("container_name").note("KubeRay names the containers", "remove it")
    for key in ("disable_automatic_runtime_detection", "disable_shm_size_detection", "use_podman"):
        docker.at(key).note("the nodes' container runtime runs the pods", "remove it")
    return {"imagePullPolicy": "Always"} if always.use() is True else {}


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


def note_top_level(document: Reader) -> None:
    """Notes the keys of the file that have no counterpart."""
    for key, (why, instead) in TOP_LEVEL.items():
        part = document.at(key)
        for each in [each for _, each in part.items()] or [part]:
            each.note(why, instead)


def note_provider(provider: Reader) -> None:
    """Notes all keys of the provider except the namespace, which was used."""
    provider.at("type").use()
    for key, part in provider.items():
        if key not in ("type", "namespace"):
            part.note(*PROVIDER.get(str(key), (_MACHINES, "remove it, or do it where the nodes are created")))


def note_machine(node_config: Reader) -> None:
    """Notes the description of a machine; older files have its `resources` in it."""
    for key, part in node_config.items():
        if key != "resources":
            part.note(f"it describes a machine, and {_MACHINES}", NODE_CONFIG)
