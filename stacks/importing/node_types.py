"""The node types of a cluster launcher file, in its current and its older forms."""

from dataclasses import dataclass

from .notes import Note, RefusedError
from .reader import Reader

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
        document.at("min_workers").note("Ray passes over it beside available_node_types", "set minReplicas of a group")
    for key in ("head_node", "worker_nodes"):
        document.at(key).note("Ray passes over it beside available_node_types", "leave it out")
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
        body.at("max_workers").note(f"the file's own max_workers is lower: {greatest}", "it is that here")
    least = body.whole("min_workers") or 0
    return NodeType(name, body, body.mapping("node_config"), min(least, most), max(least, min(most, greatest)))


def _manual(document: Reader, limit: int | None, least: int | None) -> NodeTypes:
    for key in ("head_node", "worker_nodes"):
        document.at(key).note("Ray passes over it for machines of your own", "leave it out")
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
            "lower maxReplicas of the groups, or leave it to the namespace's quota",
        )
