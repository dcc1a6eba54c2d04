"""Imports a file: the text of a stack file, and what is to be said of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path as File

from core.findings import StackFileError

from ..load import parse
from .answers import Answers
from .documents import Document, documents
from .kinds import clusters_in
from .notes import Imported, Note, RefusedError
from .writing import stack_file, tenants


@dataclass(frozen=True)
class Result:
    """What became of a file."""

    text: str
    """The stack file; empty where nothing could be imported."""

    lines: tuple[str, ...]
    """Notes, or where nothing could be imported the reasons, as `FILE:LINE: PATH: why; what to do`."""


def import_file(file: File, answers: Answers, namespace: str | None = None) -> Result:
    """The stack file for all clusters in a file; `namespace` is where they are put instead of where they were."""
    try:
        found = documents(file)
    except RefusedError as error:
        return _refused(_lines(file, None, error.notes))
    imported: list[Imported] = []
    said, refused = [], []
    for document in found:
        try:
            clusters, others = clusters_in(document.value, answers)
        except RefusedError as error:
            refused += _lines(file, document, error.notes)
            continue
        imported += clusters
        said += _lines(file, document, [*others, *(note for each in clusters for note in each.notes)])
    if refused:
        return _refused(refused)
    if not imported:
        return _refused(
            [f"{file}: there is no cluster in it; give a cluster launcher file or KubeRay's manifests", *said]
        )
    try:
        parse({"tenants": tenants(imported, namespace)})
    except StackFileError as error:
        return _refused(f"{file}: what would be written is refused: {line}" for line in str(error).splitlines())
    return Result(stack_file(imported, namespace), tuple(said))


def _refused(lines: Iterable[str]) -> Result:
    return Result("", tuple(lines))


def _lines(file: File, document: Document | None, notes: Iterable[Note]) -> list[str]:
    """The notes as a compiler says them, in the order of their lines."""
    placed = [(document.line(note.path) if document else note.line, note) for note in notes]
    placed.sort(key=lambda each: each[0] or 0)
    return [f"{file}:{line}: {note}" if line else f"{file}: {note}" for line, note in placed]
