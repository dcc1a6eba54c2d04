"""Writes a stack file of imported clusters, with a comment where a person has to decide."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import yaml

from components.ray_cluster.settings import HeadSettings, RayClusterSettings, WorkerGroupSettings
from components.ray_job.settings import RayJobSettings
from components.ray_service.settings import RayServiceSettings
from core.problems import Path
from core.stack_file import PROJECT
from core.types import Settings
from core.yaml_writer import FastFileDumper
from stacks.commands.importing.reader import Imported
from stacks.commands.importing.tenants import NO_NAMESPACE, place_of, tenants

MODELINE = "# yaml-language-server: $schema=./stack-file.schema.json\n"

_WIDTH = 110


NETWORK = "remove what its pods do not reach, and set who reaches them: dashboardFrom, clientFrom, serveFrom"


def stack_file(imported: Iterable[Imported], namespace: str | None) -> str:
    """The text of a whole stack file."""
    imported = [_in_order(each) for each in imported]
    made = tenants(imported, namespace)
    text = MODELINE + dump({"config": {f"{PROJECT}:tenants": made}})
    return _commented(text, list(_decisions(imported, made, namespace)))


def _in_order(imported: Imported) -> Imported:
    """The cluster with its keys, and those of its head, worker groups and owner, in the order of the documentation."""
    whole = _sorted(imported.cluster, RayClusterSettings)
    if "head" in whole:
        whole["head"] = _sorted(whole["head"], HeadSettings)
    if "workerGroups" in whole:
        whole["workerGroups"] = [_sorted(each, WorkerGroupSettings) for each in whole["workerGroups"]]
    owner = imported.owner
    if owner:
        model = RayJobSettings if owner.key == "jobs" else RayServiceSettings
        owner = replace(owner, settings=_sorted(owner.settings, model))
    return replace(imported, cluster=whole, owner=owner)


def _sorted(settings: dict[str, Any], model: type[Settings]) -> dict[str, Any]:
    return {
        str(field.alias): settings[str(field.alias)] for field in model.model_fields.values() if field.alias in settings
    }


def dump(value: Any) -> str:
    """Values as the text of a stack file."""
    return yaml.dump(value, Dumper=FastFileDumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def _decisions(
    imported: list[Imported], made: list[dict[str, Any]], namespace: str | None
) -> Iterable[tuple[Path, str]]:
    """Places in the stack file, and what a person has to decide there."""
    root: Path = ("config", f"{PROJECT}:tenants")
    for tenant_index, tenant in enumerate(made):
        tenant_path: Path = (*root, tenant_index)
        if tenant["name"] == NO_NAMESPACE and not namespace:
            yield (*tenant_path, "name"), "decide: the namespace of these clusters; the imported file sets none"
        yield (*tenant_path, "network"), f"decide: {NETWORK}"
        if "podSecurity" in tenant:
            yield (*tenant_path, "podSecurity"), "decide: restricted, once the imported pods meet it (they do not yet)"
        places = Counter[str]()
        for each in imported:
            if place_of(each, namespace) != tenant.get("namespace", tenant["name"]):
                continue
            inside: Path = (each.key, places[each.key], *(("cluster",) if each.owner else ()))
            places[each.key] += 1
            decisions = [note for note in each.notes if note.at is not None]
            yield from (
                ((*tenant_path, *inside, *(note.at or ())), f"decide: {note.instead} ({note.why})")
                for note in decisions
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
