"""Adds a RayCluster to the text of a stack file. Keeps its comments and its order: only adds lines."""

import textwrap
from collections.abc import Iterator
from typing import Any

import yaml

from core.stack_file import PROJECT

_TENANTS = f"{PROJECT}:tenants"

Lines = list[str]


class CannotInsertError(Exception):
    """The text has no place for more lines; the message says what to change."""


def insert_cluster(text: str, tenant: dict[str, Any], cluster: dict[str, Any]) -> str:
    """The text with the cluster under the tenant of the same namespace, or under a new one.

    `tenant`: the new tenant for the stack file, without clusters.
    Raises CannotInsertError if the list to add to is written in one line.
    """
    root = _mapping(yaml.compose(text, Loader=yaml.CSafeLoader), "the file")
    config = _mapping(_value(root, "config"), "config")
    tenants = _value(config, _TENANTS)
    if tenants is None:
        return _added(text, config, {_TENANTS: [{**tenant, "clusters": [cluster]}]})
    namespace = tenant.get("namespace", tenant["name"])
    existing = next((each for each in _items(tenants, _TENANTS) if _namespace(each) == namespace), None)
    if existing is None:
        return _added(text, tenants, [{**tenant, "clusters": [cluster]}])
    clusters = _value(_mapping(existing, f"tenant {namespace}"), "clusters")
    if clusters is None:
        return _added(text, existing, {"clusters": [cluster]})
    _items(clusters, f"clusters of tenant {namespace}")
    return _added(text, clusters, [cluster])


def _mapping(node: yaml.Node | None, what: str) -> yaml.MappingNode:
    if isinstance(node, yaml.MappingNode) and not node.flow_style:
        return node
    raise _in_one_line(what)


def _items(node: yaml.Node, what: str) -> list[yaml.Node]:
    if isinstance(node, yaml.SequenceNode) and not node.flow_style:
        return list(node.value)
    raise _in_one_line(what)


def _in_one_line(what: str) -> CannotInsertError:
    return CannotInsertError(
        f"{what} is not written as a block, one key or item in each line: write it so, or add the lines by hand"
    )


def _value(mapping: yaml.Node, key: str) -> yaml.Node | None:
    return next((value for name, value in mapping.value if name.value == key), None)


def _namespace(tenant: yaml.Node) -> str | None:
    keys = {name.value: value.value for name, value in tenant.value} if isinstance(tenant, yaml.MappingNode) else {}
    return keys.get("namespace", keys.get("name"))


def _added(text: str, parent: yaml.Node, entry: Any) -> str:
    """The text with an entry after the last line of a block."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.removesuffix(newline).split(newline)
    after = _last_line(lines, parent) + 1
    indent = " " * parent.start_mark.column
    new = textwrap.indent(_dump(entry), indent).splitlines()
    return newline.join([*lines[:after], *new, *lines[after:], ""])


def _last_line(lines: Lines, node: yaml.Node) -> int:
    """The last line of a node's own text; PyYAML ends a block where the next one begins."""
    mark = list(_leaves(node))[-1].end_mark
    last: int = mark.line - 1 if mark.column == 0 else mark.line
    while not lines[last].strip():
        last -= 1
    return last


def _leaves(node: yaml.Node) -> Iterator[yaml.Node]:
    if not isinstance(node, yaml.CollectionNode) or node.flow_style or not node.value:
        yield node
        return
    for child in node.value:
        for each in child if isinstance(child, tuple) else (child,):
            yield from _leaves(each)


class _Dumper(yaml.SafeDumper):
    """Lists are indented below their keys, as in the stack files."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _dump(entry: Any) -> str:
    return yaml.dump(entry, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
