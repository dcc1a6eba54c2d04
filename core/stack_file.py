"""Reads a stack file: its text, its YAML, and the values of one program, merged over its bases
(`ray-platform:extends`).

A base is a stack file, too, which only has keys of this program. Pulumi reads the stack file alone, so the program
reads the bases itself.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os.path import normpath
from pathlib import Path, PurePath
from typing import Any

from core.problems import UNKNOWN_FIELD, Finding, StackFileError, in_one_line, shown
from core.problems import Path as Place
from core.yaml_reader.document import Document, document, merged
from core.yaml_reader.scalars import DocumentError, Node, Span

PROJECT = "ray-platform"
"""Namespace of the program's keys in a stack file: `ray-platform:nodes`."""

PREFIX = f"{PROJECT}:"

LARGEST_FILE = 4 * 2**20
"""Bytes. A thousand clusters take one or two hundred kilobytes; a larger file is a mistake."""

_FILES = "Pulumi.*.yaml"
"""Names of stack files."""

EXTENDS = "extends"
"""Key of the files that a stack file is merged over."""

FILE = "file"
"""Key of a configuration that names the stack file instead of repeating it (environment/workspace.py)."""

_MOST_BASES = 20
"""Maximum number of bases of a stack file, each counted once. More is a mistake: nobody would find a value in them."""

_PLACE: Place = ("config", f"{PREFIX}{EXTENDS}")

_RULE = "extends"

_OF_PULUMI = "is not allowed in a base, because Pulumi only reads the stack file: move it there"

BaseReader = Callable[[str], tuple[str, str]]
"""The name for messages and the text of a base, by its path from the stack file's folder. Raises StackFileError."""

PULUMIS_OWN = ("secretsprovider", "encryptedkey", "encryptionsalt", "environment")
"""Other keys of Pulumi in a stack file, beside `config` (pkg/workspace, ProjectStack)."""

NOT_RELATIVE = "not-relative"
"""Rule of a finding on a path that is not allowed."""

UNREADABLE = "unreadable"
"""Rule of a finding on a file that cannot be opened, so that its content is unknown."""


@dataclass(frozen=True)
class StackFile:
    """A stack file that is YAML."""

    name: str
    """Its name for messages."""
    text: str
    document: Document
    """Merged over the file's bases, if it has any."""
    own: Document
    """What the file itself contains, which is also what Pulumi passes to the program."""
    read_file: BaseReader | None = None
    """Reads its bases, and other files that it names. Default: from its folder."""
    folders: Mapping[str, PurePath] = field(default_factory=dict)
    """The folder of each base, from the stack file's, by the base's name for messages."""
    advice: tuple[Finding, ...] = ()
    """What was left out of the files that it names."""

    @property
    def config(self) -> dict[str, Any]:
        """The values under `config`, of all programs."""
        return self.document.value.get("config") or {}

    @property
    def own_config(self) -> dict[str, Any]:
        """`config` without what the bases add."""
        return self.own.value.get("config") or {}

    def values(self, prefix: str) -> dict[str, Any]:
        """The values under `config` whose keys have the prefix, by the rest of the key."""
        return with_prefix(prefix, self.config)

    def beside(self, path: str, base: str | None) -> tuple[str, str]:
        """The name for messages and the text of a file, by its path from the folder of the stack file, or of a base of
        it. Raises StackFileError, also if the path is not relative."""
        if message := _not_relative(path, "cluster.yaml"):
            raise StackFileError([Finding((), None, message, NOT_RELATIVE)])
        read_file = self.read_file or _from_folder(Path(self.name).parent)
        return read_file(normpath(self.folders.get(base or "", PurePath()) / path))

    def error(self, findings: Iterable[Finding]) -> StackFileError:
        """An error of the findings, with their lines and columns."""
        return StackFileError([self._placed(each) for each in findings], self.name)

    def _placed(self, finding: Finding) -> Finding:
        if not finding.path or finding.line:
            return finding
        path = ("config", *finding.path)
        span = self.document.span(path, of_key=finding.rule == UNKNOWN_FIELD)
        return replace(
            finding,
            message=self.document.said(path, finding.message),
            line=span.line,
            column=span.column,
            end_column=span.end_column,
            file=span.file,
        )


def with_prefix(prefix: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The values whose keys have the prefix, by the rest of the key."""
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def stacks_in(folder: Path) -> list[str]:
    """The names of the stacks whose files are in a folder."""
    return sorted(stack_name(each) for each in folder.glob(_FILES))


def read(file: Path) -> str:
    """The text of a file. Raises StackFileError if it cannot be read, is too large or is not UTF-8."""
    try:
        if file.is_dir():
            raise _refused(file, "is a folder: name a file in it", UNREADABLE)
        if file.is_fifo() and file.parts[:2] != ("/", "dev"):
            raise _refused(
                file, "is a pipe, and nothing may ever be written to it: name a file, or /dev/stdin", UNREADABLE
            )
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        if isinstance(error, FileNotFoundError) and file.match(_FILES) and (stacks := stacks_in(file.parent)):
            reason = f"{reason}. Stacks here: {', '.join(stacks)}"
        raise _refused(file, f"cannot be read: {reason}", UNREADABLE) from error
    if len(content) > LARGEST_FILE:
        raise _refused(file, f"the file is larger than {LARGEST_FILE} bytes: is it a stack file?", "file-size")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(errors="replace")
        span = Span(before.count("\n") + 1, len(before) - before.rfind("\n"))
        wrong = f"byte 0x{content[error.start]:02x} is not UTF-8: save the file in that encoding"
        raise _refused(file, wrong, "encoding", span) from error


def stack_name(file: Path) -> str:
    """The stack's name in the name of its file, `Pulumi.<stack>.yaml`."""
    return file.name.removeprefix("Pulumi.").removesuffix(file.suffix)


def stack_file(name: str | Path, text: str, read_base: BaseReader | None = None) -> StackFile:
    """Parses a stack file, and merges it over its bases. Raises StackFileError if one is not YAML, or not a stack file.

    `read_base`: reads its bases. Default: from the folder of the path `name`.
    """
    return over_bases(unmerged(name, text), read_base)


def over_bases(file: StackFile, read_base: BaseReader | None = None) -> StackFile:
    """The stack file merged over its bases. Raises StackFileError: a base cannot be read, is not a stack file, has keys
    that only a stack file can have, or extends itself."""
    read_base = read_base or _from_folder(Path(file.name).parent)
    bases = _Bases(file.name, read_base)
    document = bases.under(_File("", None, file.own)) if f"{PREFIX}{EXTENDS}" in file.own_config else file.document
    return replace(file, document=document, read_file=read_base, folders=bases.folders)


def unmerged(name: str | Path, text: str) -> StackFile:
    """Parses a stack file without its bases. Raises StackFileError if it is not YAML, or not a stack file."""
    try:
        found = document(text)
    except DocumentError as error:
        raise _refused(name, error.message, error.rule, error.span) from error
    if found is None or found.value is None:
        raise _refused(name, "the file is empty: begin with `config:`", "no-stack-file", Span(1, 1))
    keys = found.value if isinstance(found.value, dict) else {}
    config = keys.get("config")
    if not keys.keys() & {"config", *PULUMIS_OWN}:
        message = "this is not a stack file: a stack file is a mapping with the key `config`"
        raise _refused(name, message, "no-stack-file", found.span(()))
    if config is not None and not isinstance(config, dict):
        message = "this is not a stack file: `config` must be a mapping with keys such as `ray-platform:tenants`"
        raise _refused(name, message, "no-stack-file", found.span(("config",)))
    return StackFile(str(name), text, found, found)


def as_yaml(values: Mapping[str, Any]) -> str:
    """Values as a stack file that Pulumi reads: as JSON, which is YAML.

    PyYAML would not quote the text `7e10`, which is a number to Pulumi. JSON's own escape of a character beyond U+FFFF
    is none of YAML's, which refuses it; and YAML refuses or folds some characters that are not escaped.
    """
    text = json.dumps(values, indent=1, ensure_ascii=False)
    return "".join(each if each.isprintable() or each == "\n" else f"\\U{ord(each):08X}" for each in text)


def _refused(name: str | Path, message: str, rule: str, span: Span | None = None) -> StackFileError:
    place = (span.line, span.column, span.end_column) if span else ()
    return StackFileError([Finding((), None, in_one_line(message), rule, *place)], str(name))


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
        self.folders: dict[str, PurePath] = {}
        """By their names for messages, from the folder of the stack file."""
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
            if wrong := _not_relative(name, "base.yaml"):
                raise self._error(file, place, wrong)
            yield place, name

    def _base(self, path: str) -> Document:
        if path in self._open:
            chain = " -> ".join([*self._open[self._open.index(path) :], path])
            raise _wrong_base(f"extends itself, {chain}: remove one of these")
        if path not in self._merged:
            if len(self._merged) + len(self._open) == _MOST_BASES:
                raise _wrong_base(f"is one base too many: a stack file may have {_MOST_BASES}")
            name, text = self._read(path)
            self.folders[name] = PurePath(path).parent
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


def _not_relative(path: str, example: str) -> str | None:
    """The error if a path is absolute, or a URL."""
    if PurePath(path).is_absolute() or "://" in path:
        return f"{shown(path)} is not allowed: write a path from the folder of this file, such as {example}"
    return None


def _wrong_base(message: str) -> StackFileError:
    return StackFileError([Finding((), None, message, _RULE)])


def _name_file(node: Node, name: str) -> None:
    """Adds the file's name to the spans of a document that nobody else uses."""
    node.span = node.span._replace(file=name)
    if node.key_spans:
        node.key_spans = {key: span._replace(file=name) for key, span in node.key_spans.items()}
    for child in node.children.values():
        _name_file(child, name)
