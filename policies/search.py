"""Finds what is inside an object of a kind that no rule knows: whole objects, specs of RayClusters, pod templates.

AppWrapper, LeaderWorkerSet, JobSet, ManifestWork, RayClusterFleet, Workflow and others have them at places of their
own. So they are recognized by their shape: an apiVersion with a kind, a `headGroupSpec`, a `spec` with `containers`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from core.pods import RAY
from core.problems import Path
from core.yaml_reader.document import Document, documents
from core.yaml_reader.scalars import DocumentError
from policies.values import Node, NotKnownYetError, Object, Secret

Found: TypeAlias = tuple[str, Node]
"""What a value is (OBJECT, TEXT, RAY_CLUSTER or POD), and the value."""

OBJECT, TEXT, RAY_CLUSTER, POD = "object", "text", "RayCluster", "pod"

_KNOWN = (RAY, "scheduling.volcano.sh", "batch.volcano.sh", "kueue.x-k8s.io", "cert-manager.io")
"""API groups besides Kubernetes' own whose kinds the rules know, or which create no pods."""

_UNKNOWN_HIDES = ("spec", "template")
"""Keys below which there may be a pod or a RayCluster: their values have to be known."""


def is_foreign(owner: Object) -> bool:
    """Whether the kind is neither Kubernetes' own nor one that rules know."""
    of_kubernetes = "." not in owner.group or owner.group.endswith(".k8s.io")
    return not of_kubernetes and owner.group not in _KNOWN


def inside(owner: Object) -> Iterator[Found]:
    """What is inside an object of a foreign kind. Raises NotKnownYetError if it may be in an unknown value."""
    if is_foreign(owner):
        yield from _in(owner.root)


def with_inner(owner: Object) -> Iterator[Object]:
    """The object, and all objects inside it: those of lists, and of kinds that apply others. A list is only its items.

    Values that are not known yet are skipped.
    """
    try:
        items = list(owner.root.at("items").items()) if owner.kind.endswith("List") else []
        found = list(inside(owner))
    except NotKnownYetError:
        items, found = [], []
    for node in items:
        yield from with_inner(_inner(owner, node, owner.within, owner.protected))
    if items:
        return
    yield owner
    for what, node in found:
        if what == OBJECT:
            yield from with_inner(_inner(owner, node, owner, None))
        elif what == TEXT:
            for each in _in_text(owner, node):
                yield from with_inner(each)


def _in(node: Node) -> Iterator[Found]:
    entries = dict(node.entries())
    if node.path and _is_object(entries):
        yield OBJECT, node
    elif "headGroupSpec" in entries:
        yield RAY_CLUSTER, node
    elif "spec" in entries and _has_containers(entries["spec"]):
        yield POD, node
    elif _is_manifest(node):
        yield TEXT, node
    else:
        for each in (*entries.values(), *node.items()):
            try:
                yield from _in(each)
            except NotKnownYetError as unknown:
                if unknown.path != each.path or each.path[-1] in _UNKNOWN_HIDES:
                    raise


def _is_object(entries: dict[str, Node]) -> bool:
    """References to objects, such as `scaleTargetRef`, have neither metadata nor spec."""
    return {"apiVersion", "kind"} <= entries.keys() and not {"metadata", "spec", "data", "rules"}.isdisjoint(entries)


def _has_containers(spec: Node) -> bool:
    return any(list(each.entries()) for each in spec.at("containers").items())


def _is_manifest(node: Node) -> bool:
    text = node.text or ""
    return "\n" in text and "apiVersion:" in text and "kind:" in text


def _inner(owner: Object, node: Node, within: Object | None, protected: bool | None) -> Object:
    body: dict[str, Any] = dict(node.raw) if isinstance(node.raw, Mapping) else {}
    if node.secret:
        body = {key: value if key in ("apiVersion", "kind") else Secret(value) for key, value in body.items()}
    return Object(
        body,
        owner.source,
        lambda steps: owner.line((*node.path, *steps)),
        protected,
        within,
        lambda steps, message: owner.said((*node.path, *steps), message),
    )


def _in_text(owner: Object, node: Node) -> Iterator[Object]:
    """The objects in a text of YAML. One with a template language in it is skipped."""
    try:
        found = [each for each in documents(node.text or "") if isinstance(each.value, dict) and not node.secret]
    except DocumentError:
        return
    for document in found:
        if {"apiVersion", "kind"} <= document.value.keys():
            yield Object(
                document.value, owner.source, _lines_of_text(owner, node.path, document), None, owner, document.said
            )


def _lines_of_text(owner: Object, path: Path, document: Document) -> Callable[[Path], int | None]:
    def line(steps: Path) -> int | None:
        key = owner.line(path)
        return None if key is None else key + document.line(steps)

    return line
