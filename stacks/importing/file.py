"""Imports a file: reads its documents, finds the clusters in them, and writes a stack file.

The stack file has tenants by namespace, and a comment where a person has to decide.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

import yaml

from components.ray_cluster.node_settings import HeadSettings, WorkerGroupSettings
from components.ray_cluster.settings import RayClusterSettings
from components.ray_job.settings import RayJobSettings
from components.ray_service.settings import RayServiceSettings
from core.problems import Path, StackFileError
from core.stack_file import PROJECT
from core.types import Settings

from ..load import parse
from .cai import from_cai, is_cai_file
from .launcher import from_launcher, is_launcher_file
from .manifests import KINDS, from_manifest, has_cluster
from .owners import OWNERS, NotWrittenError, from_owner
from .proposal import FIRST_OPERATOR, PROPOSAL, from_first_operator, from_proposal
from .reader import Answers, Document, Imported, Note, RefusedError, documents
from .tenants import NO_NAMESPACE, needed, place_of, tenants


def clusters_in(document: Any, answers: Answers) -> tuple[list[Imported], list[Note]]:
    """The clusters of a document, and notes on its other objects.

    Raises RefusedError if one of its clusters cannot be imported.
    """
    found: list[Imported] = []
    others: list[Note] = []
    for path, body in _objects(document, ()):
        if imported := _cluster(body, answers, path):
            found.append(imported)
        elif isinstance(body, Mapping) and "kind" in body:
            name = (body.get("metadata") or {}).get("name") if isinstance(body.get("metadata"), Mapping) else None
            others.append(Note(path, f"{body['kind']} {name!r} is not imported", "keep applying it as a manifest"))
        else:
            others.append(Note(path, "it is neither a cluster launcher file nor a manifest", "nothing was made of it"))
    return found, others


def _objects(document: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """The objects of a document: those of a List, or the document itself."""
    if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        for index, each in enumerate(items if isinstance(items, list) else []):
            yield from _objects(each, (*path, "items", index))
    else:
        yield path, document


def _cluster(body: Any, answers: Answers, path: Path) -> Imported | None:
    try:
        imported = _imported(body, answers)
    except RefusedError as error:
        raise RefusedError(*(_below(path, note) for note in error.notes)) from error
    if imported is None:
        return None
    return replace(imported, notes=tuple(_below(path, note) for note in imported.notes))


def _imported(body: Any, answers: Answers) -> Imported | None:
    if not isinstance(body, Mapping):
        return None
    group = str(body.get("apiVersion", "")).partition("/")[0]
    kind = str(body.get("kind"))
    if group == "ray.io" and kind in KINDS and has_cluster(body):
        return _with_owner(body, answers) if kind in OWNERS else from_manifest(body, answers, rename=True)
    if (group, kind) == (FIRST_OPERATOR, "RayCluster"):
        return from_first_operator(body, answers)
    if (group, kind) == (PROPOSAL, "Ray"):
        return from_proposal(body, answers)
    return from_launcher(body, answers) if is_launcher_file(body) else None


def _with_owner(body: Mapping[str, Any], answers: Answers) -> Imported:
    """A RayJob or RayService as a job or service of the tenant, or if that is not possible its cluster alone."""
    try:
        return from_owner(body, answers)
    except NotWrittenError as error:
        imported = from_manifest(body, answers, rename=True)
        why = f"the {body['kind']} cannot be one of the tenant's {OWNERS[body['kind']].key}: {error}"
        note = Note(("kind",), why, "its cluster becomes one that stays")
        return replace(imported, notes=(note, *imported.notes))


def _below(path: Path, note: Note) -> Note:
    return Note((*path, *note.path), note.why, note.instead, note.at)


@dataclass(frozen=True)
class Result:
    """The result of importing a file."""

    text: str
    """The stack file; empty if nothing could be imported."""

    lines: tuple[str, ...]
    """Notes or, if nothing could be imported, the reasons, as `FILE:LINE: PATH: why; what to do`."""


def import_file(file: File, answers: Answers, namespace: str | None = None) -> Result:
    """The stack file for all clusters in a file. `namespace` replaces the namespaces of the file."""
    try:
        found = documents(file)
    except RefusedError as error:
        return _refused(_lines(file, None, error.notes))
    if any(is_cai_file(document.value) for document in found):
        return _on_cml(file, found, answers)
    imported: list[Imported] = []
    notes, refused = [], []
    for document in found:
        try:
            clusters, others = clusters_in(document.value, answers)
        except RefusedError as error:
            refused += _lines(file, document, error.notes)
            continue
        imported += clusters
        notes += _lines(file, document, [*others, *(note for each in clusters for note in each.notes)])
    if refused:
        return _refused(refused)
    if not imported:
        return _refused([f"{file}: has no cluster; use a cluster launcher file or KubeRay's manifests", *notes])
    made = tenants(imported, namespace)
    try:
        parse({"tenants": made})
    except StackFileError as error:
        return _refused(f"{file}: the resulting stack file is invalid: {line}" for line in str(error).splitlines())
    notes += [f"{file}: {note}" for tenant in made for note in _of_tenant(tenant)]
    return Result(stack_file(imported, namespace), tuple(notes))


def _on_cml(file: File, found: list[Document], answers: Answers) -> Result:
    """The stack file for the cluster of a file of ray-serve-cai."""
    if len(found) > 1:
        return _refused([f"{file}: has several documents, and one of them has cai: import them as separate files"])
    [document] = found
    try:
        settings, notes = from_cai(document.value, answers)
    except RefusedError as error:
        return _refused(_lines(file, document, error.notes))
    try:
        parse({"cml": settings})
    except StackFileError as error:
        return _refused(f"{file}: the resulting stack file is invalid: {line}" for line in str(error).splitlines())
    text = MODELINE + _dump({"config": {f"{PROJECT}:cml": settings}})
    return Result(text, tuple(_lines(file, document, notes)))


def _of_tenant(tenant: dict[str, Any]) -> Iterator[str]:
    """Notes on the settings of a tenant, and on what has to be in its namespace."""
    name = tenant["name"]
    yield f"tenant {name}: its namespace is closed except for network.egress, which the file does not set; {_NETWORK}"
    if "podSecurity" in tenant:
        yield f"tenant {name}: podSecurity is {tenant['podSecurity']}, because the pods do not meet restricted"
    if objects := needed(tenant):
        yield f"tenant {name}: its pods need {', '.join(objects)}; create what is missing before the clusters"


_NETWORK = "remove what its pods do not reach, and set who reaches them: dashboardFrom, clientFrom, serveFrom"


def _refused(lines: Iterable[str]) -> Result:
    return Result("", tuple(lines))


def _lines(file: File, document: Document | None, notes: Iterable[Note]) -> list[str]:
    """The notes in the format of a compiler, in the order of their lines."""
    placed = [(document.line(note.path) if document else note.line, note) for note in notes]
    placed.sort(key=lambda each: each[0] or 0)
    return [f"{file}:{line}: {note}" if line else f"{file}: {note}" for line, note in placed]


MODELINE = "# yaml-language-server: $schema=./stack-file.schema.json\n"

_WIDTH = 110


def stack_file(imported: Iterable[Imported], namespace: str | None) -> str:
    """The text of a whole stack file."""
    imported = [_in_order(each) for each in imported]
    made = tenants(imported, namespace)
    text = MODELINE + _dump({"config": {f"{PROJECT}:tenants": made}})
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
            yield (*tenant_path, "name"), "decide: the namespace of these clusters; the imported file sets none"
        yield (*tenant_path, "network"), f"decide: {_NETWORK}"
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
