"""The stack file of an import: tenants by namespace, with a comment where a person has to decide."""

from collections.abc import Iterable
from typing import Any

import yaml

from components.ray_cluster.node_settings import HeadSettings, WorkerGroupSettings
from components.ray_cluster.settings import RayClusterSettings
from core.problems import Path
from core.stack_file import PROJECT
from core.types import Settings

from ..settings import LONGEST_TENANT_NAME
from .names import dns_name
from .notes import Imported

MODELINE = "# yaml-language-server: $schema=./stack-file.schema.json\n"

NO_NAMESPACE = "imported"
"""Tenant of clusters whose file names no namespace."""

_WIDTH = 110


def tenants(imported: Iterable[Imported], namespace: str | None) -> list[dict[str, Any]]:
    """The clusters under a tenant for each namespace; `namespace` replaces the namespaces of the files."""
    found: dict[str, dict[str, Any]] = {}
    for each in imported:
        place = namespace or each.namespace or NO_NAMESPACE
        name = dns_name(place, LONGEST_TENANT_NAME, "team")
        tenant = {"name": name} if name == place else {"name": name, "namespace": place}
        found.setdefault(place, {**tenant, "clusters": []})["clusters"].append(each.cluster)
    return list(found.values())


def stack_file(imported: Iterable[Imported], namespace: str | None) -> str:
    """The text of a whole stack file."""
    imported = [Imported(_in_order(each.cluster), each.namespace, each.notes) for each in imported]
    made = tenants(imported, namespace)
    text = MODELINE + _dump({"config": {f"{PROJECT}:tenants": made}})
    return _commented(text, list(_decisions(imported, made, namespace)))


def _in_order(cluster: dict[str, Any]) -> dict[str, Any]:
    """The cluster with its keys, and those of its head and worker groups, in the order of the documentation."""
    whole = _sorted(cluster, RayClusterSettings)
    if "head" in whole:
        whole["head"] = _sorted(whole["head"], HeadSettings)
    if "workerGroups" in whole:
        whole["workerGroups"] = [_sorted(each, WorkerGroupSettings) for each in whole["workerGroups"]]
    return whole


def _sorted(settings: dict[str, Any], model: type[Settings]) -> dict[str, Any]:
    return {
        str(field.alias): settings[str(field.alias)] for field in model.model_fields.values() if field.alias in settings
    }


class _Dumper(yaml.CSafeDumper):
    """Writes repeated values in full instead of as aliases, and multi-line texts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def _dump(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def _decisions(
    imported: list[Imported], made: list[dict[str, Any]], namespace: str | None
) -> Iterable[tuple[Path, str]]:
    """Places in the stack file, and what a person has to decide there."""
    root: Path = ("config", f"{PROJECT}:tenants")
    for tenant_index, tenant in enumerate(made):
        tenant_path: Path = (*root, tenant_index)
        if tenant["name"] == NO_NAMESPACE and not namespace:
            yield (*tenant_path, "name"), "decide: the namespace of these clusters; what was imported names none"
        for each in imported:
            for cluster_index, cluster in enumerate(tenant["clusters"]):
                if cluster is each.cluster:
                    for note in each.notes:
                        if note.at is not None:
                            yield (
                                (*tenant_path, "clusters", cluster_index, *note.at),
                                f"decide: {note.instead} ({note.why})",
                            )


def _commented(text: str, comments: list[tuple[Path, str]]) -> str:
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    lines = text.splitlines()
    above: dict[int, list[str]] = {}
    for path, comment in comments:
        number = _line(root, path)
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        above.setdefault(number, []).append(f"{indent}# {comment}")
    return "".join(f"{each}\n" for number, line in enumerate(lines) for each in (*above.get(number, ()), line))


def _line(root: yaml.Node | None, path: Path) -> int:
    """The line of a place, or of its nearest existing parent; a worker group is found by its name."""
    node, number = root, 0
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = next(((key, value) for key, value in node.value if key.value == step), None)
        elif isinstance(node, yaml.SequenceNode):
            found = next(((each, each) for index, each in enumerate(node.value) if step in (index, _name(each))), None)
        else:
            found = None
        if found is None:
            break
        number, node = found[0].start_mark.line, found[1]
    return number


def _name(item: yaml.Node) -> str | None:
    """The `groupName` of a list's item."""
    keys = item.value if isinstance(item, yaml.MappingNode) else []
    return next((value.value for key, value in keys if key.value == "groupName"), None)
