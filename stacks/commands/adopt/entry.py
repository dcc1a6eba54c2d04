"""The entry of a live RayCluster in a stack file, so that the cluster stays exactly as it is. Pure functions.

`insert_cluster` adds it to the text of the file, and keeps its comments and its order: it only adds lines.
"""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from components.ray_cluster.manifests import SETTINGS_BY_LABEL, settings_of_labels
from components.ray_cluster.rules import valid
from core.body import Body
from core.images import with_mirrors
from core.problems import dotted
from core.stack_file import PROJECT
from core.strategic_merge import difference
from core.yaml_writer import FileDumper
from stacks.commands.adopt.live import CannotAdoptError
from stacks.commands.importing.manifests import LAST_APPLIED, from_manifest
from stacks.launcher_files.reader import RefusedError
from stacks.objects.queues import queue_of, scheduling_of
from stacks.objects.ray_clusters import with_tenant_values
from stacks.settings import LONGEST_TENANT_NAME, StackSettings, TenantSettings


@dataclass(frozen=True)
class Entry:
    """An entry of a stack file, and notes for its user."""

    tenant: dict[str, Any]
    """The tenant without clusters, for a file that does not have it: a new one for the cluster's namespace, or the name
    of one that a base of the file has."""

    cluster: dict[str, Any]

    notes: tuple[str, ...]


def entry(body: Body, stack: StackSettings) -> Entry:
    """The cluster as an entry of this stack.

    Fields that have a setting use it, the rest becomes `overrides`, so that the stack renders exactly the live spec.
    Raises CannotAdoptError if the stack has the cluster already, or cannot render it.
    """
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    tenant = next((each for each in stack.tenants if each.namespace_name == namespace), None)
    if tenant and name in [cluster.name for cluster in tenant.clusters]:
        raise CannotAdoptError(
            f"the stack has RayCluster {name!r} of tenant {tenant.name!r} already: there is nothing to adopt"
        )
    new: dict[str, Any] = {"name": tenant_name(namespace), "namespace": namespace, "createNamespace": False}
    if stack.platform is None:
        new["network"] = {"policies": False}  # an edit that is meant to change nothing must not block traffic
    if new["name"] == namespace:
        del new["namespace"]
    if tenant:
        new = {"name": tenant.name}
    try:
        imported = from_manifest(_as_applied(body))
    except RefusedError as error:
        raise CannotAdoptError(f"RayCluster {namespace}/{name}: {error}") from error
    owner = tenant or TenantSettings(name=str(new["name"]))
    settings = _scheduled(imported.cluster) if stack.scheduler else imported.cluster
    try:
        cluster = _exact({"name": name, "adopt": True, **settings}, body, owner, stack)
    except ValidationError as error:
        faults = "; ".join(f"{dotted(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False))
        raise CannotAdoptError(f"RayCluster {namespace}/{name} cannot be written as a stack file: {faults}") from error
    notes = [str(note) for note in imported.notes]
    if stack.scheduler and "queue" not in settings and (queue := queue_of(owner)):
        notes.append(f"from then on it waits in queue {queue}, its tenant's")
    return Entry(new, cluster, tuple(notes))


def _scheduled(cluster: dict[str, Any]) -> dict[str, Any]:
    """The cluster with the settings from which its scheduler's labels follow."""
    labels = cluster.get("labels") or {}
    other_labels = {key: value for key, value in labels.items() if key not in SETTINGS_BY_LABEL}
    without = {key: value for key, value in cluster.items() if key != "labels"}
    return {**without, **({"labels": other_labels} if other_labels else {}), **settings_of_labels(labels)}


def _as_applied(body: Body) -> Body:
    """The object without the fields that only the API server, the operator and kubectl write."""
    metadata = {key: value for key, value in body["metadata"].items() if key in ("name", "namespace", "labels")}
    if annotations := _annotations(body):
        metadata["annotations"] = annotations
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": metadata, "spec": body["spec"]}


def _annotations(body: Body) -> dict[str, str]:
    # That of `kubectl apply` is useless once the stack has the object.
    return {key: value for key, value in (body["metadata"].get("annotations") or {}).items() if key != LAST_APPLIED}


def tenant_name(namespace: str) -> str:
    """A name for the tenant of a namespace; a tenant's name begins with a letter and is shorter."""
    name = namespace if namespace[0].isalpha() else f"team-{namespace}"
    return name[:LONGEST_TENANT_NAME].rstrip("-")


def _exact(cluster: dict[str, Any], body: Body, tenant: TenantSettings, stack: StackSettings) -> dict[str, Any]:
    """The entry with the overrides that make its spec equal to the live one, including the tenant's defaults."""
    bare = {key: value for key, value in cluster.items() if key != "overrides"}
    overrides = difference(_rendered(bare, tenant, stack)["spec"], body["spec"])
    exact = {**bare, **({"overrides": overrides} if overrides else {})}
    rendered = _rendered(exact, tenant, stack)
    lost = [f"spec.{key}" for key, value in body["spec"].items() if rendered["spec"].get(key) != value]
    lost += [f"spec.{key}" for key in rendered["spec"].keys() - body["spec"].keys()]
    lost += [
        f"metadata.{part}[{key!r}]"
        for part, metadata in (("labels", body["metadata"].get("labels") or {}), ("annotations", _annotations(body)))
        for key, value in metadata.items()
        if (rendered["metadata"].get(part) or {}).get(key) != value
    ]
    if lost:
        raise CannotAdoptError(
            f"RayCluster {cluster['name']!r} cannot be written exactly as a stack file, because of "
            f"{', '.join(lost)}: change that in the cluster first"
        )
    return exact


def _rendered(cluster: dict[str, Any], tenant: TenantSettings, stack: StackSettings) -> Body:
    settings = valid(cluster)
    scheduling = scheduling_of(stack, tenant, settings)
    return with_mirrors(with_tenant_values(tenant, settings, scheduling=scheduling), stack.images.mirrors)


_TENANTS = f"{PROJECT}:tenants"

Lines = list[str]


class CannotInsertError(Exception):
    """The text has no place for more lines; the message names what to change."""


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
    existing = next((each for each in _items(tenants, _TENANTS) if _is(each, tenant)), None)
    if existing is None:
        return _added(text, tenants, [{**tenant, "clusters": [cluster]}])
    clusters = _value(_mapping(existing, f"tenant {namespace}"), "clusters")
    if clusters is None:
        return _added(text, existing, {"clusters": [cluster]})
    _items(clusters, f"clusters of tenant {namespace}")
    return _added(text, clusters, [cluster])


def only_added(before: StackSettings, after: StackSettings, namespace: str, cluster: dict[str, Any]) -> None:
    """Raises CannotInsertError unless the new lines add this entry of a RayCluster and nothing else: clusters that an
    alias repeats belong to another tenant, too, and those of `<<` would be gone."""
    name = cluster["name"]
    known = {each.namespace_name: each for each in before.tenants}
    for tenant in after.tenants:
        there = tenant.namespace_name == namespace
        others = tuple(each for each in tenant.clusters if not (there and each.name == name))
        was = known.get(tenant.namespace_name)
        added = [each for each in tenant.clusters if there and each.name == name]
        if added != ([valid(cluster)] if there else []) or others != (was.clusters if was else ()):
            raise CannotInsertError(
                f"the lines would not add RayCluster {namespace}/{name} alone: write out the aliases and `<<` "
                "of the tenants and their clusters, or add the lines by hand"
            )


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
        f"{what} is not written as a block with one key or item per line: write it as a block, or add the lines by hand"
    )


def _value(mapping: yaml.Node, key: str) -> yaml.Node | None:
    return next((value for name, value in mapping.value if name.value == key), None)


def _is(node: yaml.Node, tenant: dict[str, Any]) -> bool:
    """Whether a tenant of the file is the given one: by its name, or by the namespace of a new one."""
    keys = {name.value: value.value for name, value in node.value} if isinstance(node, yaml.MappingNode) else {}
    if "namespace" in tenant or "createNamespace" in tenant:
        return bool(keys.get("namespace", keys.get("name")) == tenant.get("namespace", tenant["name"]))
    return bool(keys.get("name") == tenant["name"])


def _added(text: str, parent: yaml.Node, entry: Any) -> str:
    """The text with an entry after the last line of a block."""
    newline = "\r\n" if "\r\n" in text else "\n"
    # Lines may end differently: YAML counts each end as one, as Python does.
    lines = text.splitlines(keepends=True)
    if lines[-1].splitlines() == [lines[-1]]:
        lines[-1] += newline
    after = _last_line(lines, parent) + 1
    indent = " " * parent.start_mark.column
    written = yaml.dump(entry, Dumper=FileDumper, sort_keys=False, allow_unicode=True, width=110)
    new = [f"{line}{newline}" for line in textwrap.indent(written, indent).splitlines()]
    return "".join([*lines[:after], *new, *lines[after:]])


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
