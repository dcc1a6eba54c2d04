"""Imports a file: reads its documents, finds the clusters in them, and writes a stack file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from core.findings import StackFileError
from core.problems import Path

from ..load import parse
from .documents import Document, documents
from .launcher import from_launcher, is_launcher_file
from .manifests import KINDS, from_manifest, has_cluster
from .notes import Answers, Imported, Note, RefusedError
from .proposal import FIRST_OPERATOR, PROPOSAL, from_first_operator, from_proposal
from .writing import stack_file, tenants


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
    return Imported(imported.cluster, imported.namespace, tuple(_below(path, note) for note in imported.notes))


def _imported(body: Any, answers: Answers) -> Imported | None:
    if not isinstance(body, Mapping):
        return None
    group = str(body.get("apiVersion", "")).partition("/")[0]
    kind = str(body.get("kind"))
    if group == "ray.io" and kind in KINDS and has_cluster(body):
        return from_manifest(body, answers)
    if (group, kind) == (FIRST_OPERATOR, "RayCluster"):
        return from_first_operator(body, answers)
    if (group, kind) == (PROPOSAL, "Ray"):
        return from_proposal(body, answers)
    return from_launcher(body, answers) if is_launcher_file(body) else None


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
        return _refused(
            [f"{file}: there is no cluster in it; give a cluster launcher file or KubeRay's manifests", *notes]
        )
    try:
        parse({"tenants": tenants(imported, namespace)})
    except StackFileError as error:
        return _refused(f"{file}: what would be written is refused: {line}" for line in str(error).splitlines())
    return Result(stack_file(imported, namespace), tuple(notes))


def _refused(lines: Iterable[str]) -> Result:
    return Result("", tuple(lines))


def _lines(file: File, document: Document | None, notes: Iterable[Note]) -> list[str]:
    """The notes in the format of a compiler, in the order of their lines."""
    placed = [(document.line(note.path) if document else note.line, note) for note in notes]
    placed.sort(key=lambda each: each[0] or 0)
    return [f"{file}:{line}: {note}" if line else f"{file}: {note}" for line, note in placed]
