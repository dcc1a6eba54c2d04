"""Merges YAML documents: mappings by their keys, lists by the names of their items. Each value keeps its place."""

from typing import Any

from core.strategic_merge import DIRECTIVE, MERGE_KEYS
from core.yaml_reader.scalars import DocumentError, Node, Span

NAMES = ("name", "pool", "groupName")
"""Keys that name an item of a list: tenants, clusters and queues by `name`, nodes by `pool`, worker groups by
`groupName`."""

PATCHES = frozenset({"overrides", "podTemplate", "submitterPodTemplate", "volumes", "volumeMounts"})
"""Keys whose values have KubeRay's and Kubernetes' own fields. In these null and `$patch` are kept, because they
patch what is derived from the settings, and lists merge by the keys of Kubernetes (`MERGE_KEYS`)."""


def merged(base: Node, over: Node) -> Node:
    """`over` merged over `base`. Neither is changed; the result has nodes of both.

    Raises DocumentError if an item is to be removed that the base does not have, or an instruction is unknown.
    """
    return _merged(base, over, NAMES)


def _merged(base: Node, over: Node, names: tuple[str, ...], *, patch: bool = False) -> Node:
    """`names`: the keys that name the items of a list. `patch`: within one of PATCHES."""
    if isinstance(over.value, dict):
        return _mapping(base if isinstance(base.value, dict) else _NOTHING, over, patch)
    if isinstance(over.value, list):
        return _list(base if isinstance(base.value, list) else _NOTHING, over, names, patch)
    return over


def _mapping(base: Node, over: Node, patch: bool) -> Node:
    if not patch and DIRECTIVE in over.children:
        raise _unknown_instruction(over.children[DIRECTIVE])
    children, keys = dict(base.children), dict(base.key_spans)
    for key, child in over.children.items():
        inside = patch or key in PATCHES
        if child.value is None and not inside and key in children:
            del children[key], keys[key]
        else:
            names = MERGE_KEYS.get(str(key), ()) if inside else NAMES
            children[key] = _merged(children.get(key, _NOTHING), child, names, patch=inside)
            keys[key] = over.key_spans[key]
    return _collection({key: child.value for key, child in children.items()}, over.span, children, keys)


def _list(base: Node, over: Node, names: tuple[str, ...], patch: bool) -> Node:
    before, items = list(base.children.values()), list(over.children.values())
    if not patch and any(item.value == {DIRECTIVE: "replace"} for item in items):
        before, items = [], [item for item in items if item.value != {DIRECTIVE: "replace"}]
    # An empty list replaces: it has no names to merge by.
    key = next((each for each in names if items and _distinct(before, each) and _distinct(items, each)), None)
    found: dict[object, Node] = {item.value[key]: item for item in before} if key else {}
    for at, item in enumerate(items):
        name = item.value[key] if key else at
        if not patch and isinstance(item.value, dict) and item.value.get(DIRECTIVE) == "delete":
            if found.pop(name, None) is None:
                raise _nothing_to_delete(item.children[DIRECTIVE])
        else:
            found[name] = _merged(found.get(name, _NOTHING) if key else _NOTHING, item, names, patch=patch)
    children: dict[str | int, Node] = dict(enumerate(found.values()))
    return _collection([item.value for item in children.values()], over.span, children, {})


def _distinct(items: list[Node], key: str) -> bool:
    """Whether all items have the key, and no two of them the same text."""
    values = [item.value.get(key) if isinstance(item.value, dict) else None for item in items]
    return all(isinstance(value, str) for value in values) and len(set(values)) == len(values)


def _collection(value: Any, span: Span, children: dict[str | int, Node], keys: dict[str | int, Span]) -> Node:
    node = Node(value, span)
    node.children, node.key_spans = children, keys
    node.size += sum(child.size for child in children.values())
    node.depth = max((child.depth + 1 for child in children.values()), default=0)
    return node


def _nothing_to_delete(node: Node) -> DocumentError:
    message = (
        "$patch: delete removes the item of this name from the list of a base, which has none: correct the name, or "
        "remove the item here"
    )
    return DocumentError(message, node.span, "extends")


def _unknown_instruction(node: Node) -> DocumentError:
    message = (
        "$patch is only allowed in lists that a base has too: `$patch: delete` beside the name of an item removes the "
        "item, and an item `- $patch: replace` replaces the list"
    )
    return DocumentError(message, node.span, "extends")


_NOTHING = Node(None, Span(1, 1))
