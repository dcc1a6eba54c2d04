"""The bases of a stack file (`ray-platform:extends`), and the file merged over them.

A base is a stack file, too, which only has keys of this program. Pulumi reads the stack file alone, so the program
reads the bases itself.
"""

from collections.abc import Iterator
from dataclasses import replace
from os.path import normpath
from pathlib import Path, PurePath

from core.problems import UNKNOWN_FIELD, Finding, StackFileError, shown
from core.problems import Path as Place
from core.stack_file import EXTENDS, PREFIX, BaseReader, StackFile, read, unmerged
from core.yaml_reader.document import Document, merged
from core.yaml_reader.scalars import DocumentError, Node

_PLACE: Place = ("config", f"{PREFIX}{EXTENDS}")

MOST = 20
"""Maximum number of bases of a stack file, each counted once. More is a mistake: nobody would find a value in them."""

_RULE = "extends"

_OF_PULUMI = "is not allowed in a base, because Pulumi only reads the stack file: move it there"


def merged_over_bases(file: StackFile, read_base: BaseReader | None) -> StackFile:
    """The stack file merged over its bases.

    Raises StackFileError: a base cannot be read, is not a stack file, has keys that only a stack file can have, or
    extends itself.
    """
    read_base = read_base or _from_folder(Path(file.name).parent)
    return replace(file, document=_Bases(file.name, read_base).under(_File("", None, file.own)))


def _from_folder(folder: Path) -> BaseReader:
    def reader(path: str) -> tuple[str, str]:
        found = Path(normpath(folder / path))
        return str(found), read(found)

    return reader


class _File:
    """A stack file or one of its bases."""

    def __init__(self, path: str, name: str | None, document: Document) -> None:
        """`path`: from the folder of the stack file. `name`: for messages; None for the stack file."""
        self.folder = PurePath(path).parent
        self.name, self.document = name, document


class _Bases:
    """The bases of one stack file."""

    def __init__(self, name: str, read_base: BaseReader) -> None:
        self._stack_file, self._read = name, read_base
        self._merged: dict[str, Document] = {}
        self._open: list[str] = []

    def under(self, file: _File) -> Document:
        """The document of a file, merged over its bases: a later base over an earlier one."""
        result: Document | None = None
        for place, name in self._named(file):
            try:
                base = self._base(normpath(file.folder / name))
            except StackFileError as error:
                if error.findings[0].file:
                    raise
                # The base cannot be read: the place is the one that names it.
                raise self._error(file, place, f"{shown(name)} {error.findings[0].message}") from error
            result = self._over(result, base) if result else base
        return self._over(result, file.document) if result else file.document

    def _named(self, file: _File) -> Iterator[tuple[Place, str]]:
        """The bases that a file names, each with its place."""
        config = file.document.value.get("config") or {}
        value = config.get(_PLACE[-1], [])
        several = [((*_PLACE, at), each) for at, each in enumerate(value)] if isinstance(value, list) else None
        for place, name in [(_PLACE, value)] if several is None else several:
            if not isinstance(name, str) or not name:
                message = f"{shown(name)} is not allowed: write the path of a file, or a list of paths"
                raise self._error(file, place, message)
            if PurePath(name).is_absolute() or "://" in name:
                message = f"{shown(name)} is not allowed: write a path from the folder of this file, such as base.yaml"
                raise self._error(file, place, message)
            yield place, name

    def _base(self, path: str) -> Document:
        if path in self._open:
            chain = " -> ".join([*self._open[self._open.index(path) :], path])
            raise _refused(f"extends itself, {chain}: remove one of these")
        if path not in self._merged:
            if len(self._merged) + len(self._open) == MOST:
                raise _refused(f"is one base too many: a stack file may have {MOST}")
            name, text = self._read(path)
            document = self._document(name, text)
            self._open.append(path)
            self._merged[path] = self.under(_File(path, name, document))
            self._open.pop()
        return self._merged[path]

    def _document(self, name: str, text: str) -> Document:
        """A base, in which each value knows its file."""
        try:
            document = unmerged(name, text).own
        except StackFileError as error:
            raise StackFileError([replace(each, file=name) for each in error.findings], self._stack_file) from error
        _name_file(document.root, name)
        file = _File("", name, document)
        found = [
            *(self._finding(file, (key,), _OF_PULUMI) for key in document.value if key != "config"),
            *(
                self._finding(file, ("config", key), _OF_PULUMI)
                for key in document.value.get("config") or {}
                if not key.startswith(PREFIX)
            ),
        ]
        if found:
            raise StackFileError(found, self._stack_file)
        return document

    def _over(self, base: Document, over: Document) -> Document:
        if not over.value["config"]:
            # `config:` with all keys commented out removes nothing.
            return base
        try:
            return Document(merged(base.root, over.root))
        except DocumentError as error:
            span = error.span
            finding = Finding((), None, error.message, error.rule, span.line, span.column, span.end_column, span.file)
            raise StackFileError([finding], self._stack_file) from error

    def _error(self, file: _File, place: Place, message: str) -> StackFileError:
        return StackFileError([self._finding(file, place, message, _RULE)], self._stack_file)

    def _finding(self, file: _File, place: Place, message: str, rule: str = UNKNOWN_FIELD) -> Finding:
        span = file.document.span(place, of_key=rule == UNKNOWN_FIELD)
        path = place[1:] if place[0] == "config" else place
        return Finding(path, None, message, rule, span.line, span.column, span.end_column, file.name)


def _refused(message: str) -> StackFileError:
    return StackFileError([Finding((), None, message, _RULE)])


def _name_file(node: Node, name: str) -> None:
    """Adds the file's name to the spans of a document that nobody else uses."""
    node.span = node.span._replace(file=name)
    if node.key_spans:
        node.key_spans = {key: span._replace(file=name) for key, span in node.key_spans.items()}
    for child in node.children.values():
        _name_file(child, name)
