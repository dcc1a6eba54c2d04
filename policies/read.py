"""Reads objects from YAML files, as `kubectl apply --filename` does."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.problems import Path as Steps
from core.yaml_reader.document import Document, DocumentError, documents

from .values import Object

STDIN = "-"
"""Argument for standard input."""

_SUFFIXES = (".yaml", ".yml", ".json")

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml")
"""File names of kustomizations, which contain no objects."""


class UnreadableError(Exception):
    """A file cannot be read, or contains something other than Kubernetes objects."""


def objects(names: Iterable[str]) -> Iterator[Object]:
    """The objects in files, in folders (recursively), and in standard input. Raises UnreadableError."""
    for name in names:
        if name == STDIN:
            yield from in_text(sys.stdin.read(), "<stdin>")
        else:
            for file in _files(Path(name)):
                yield from in_text(_text(file), str(file))


def in_text(text: str, source: str) -> Iterator[Object]:
    """The objects in a YAML text. Raises UnreadableError."""
    try:
        for document in documents(text):
            yield from _in_document(document, source)
    except DocumentError as error:
        raise UnreadableError(f"{source}:{error.span.line}:{error.span.column}: {error.message}") from error


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        found = (each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
        yield from sorted(each for each in found if each.name not in _KUSTOMIZATIONS)
    else:
        yield path


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{file}: cannot be read: {error}") from error


def _in_document(document: Document, source: str) -> Iterator[Object]:
    value = document.value
    if value is None:
        return
    listed = isinstance(value, Mapping) and str(value.get("kind", "")).endswith("List") and "items" in value
    for path, body in _items(value) if listed else [((), value)]:
        if not isinstance(body, Mapping) or not {"apiVersion", "kind"} <= body.keys():
            line = document.span(path).line
            raise UnreadableError(f"{source}:{line}: this is no object of Kubernetes: it has no apiVersion and kind")
        yield Object(body, source, _lines(document, path))


def _items(value: Mapping[str, Any]) -> Iterator[tuple[Steps, Any]]:
    return ((("items", index), body) for index, body in enumerate(value["items"] or ()))


def _lines(document: Document, path: Steps) -> Any:
    return lambda steps: document.span((*path, *steps)).line
