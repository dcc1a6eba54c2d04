"""What a document is, and the clusters in it."""

from collections.abc import Iterator, Mapping
from typing import Any

from .answers import Answers
from .launcher import from_launcher, is_launcher_file
from .manifests import KINDS, from_manifest, has_cluster
from .notes import Imported, Note, Path, RefusedError
from .proposal import FIRST_OPERATOR, PROPOSAL, from_first_operator, from_proposal


def clusters_in(document: Any, answers: Answers) -> tuple[list[Imported], list[Note]]:
    """The clusters of a document, and notes on the objects in it that are none.

    Raises RefusedError where a cluster in it cannot be imported.
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
