"""Reads a stack file: its text, its YAML, and the values of one program."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.problems import UNKNOWN_FIELD, Finding, StackFileError, in_one_line
from core.yaml_reader.document import Document, document
from core.yaml_reader.scalars import DocumentError, Span

PROJECT = "ray-platform"
"""Namespace of the program's keys in a stack file: `ray-platform:nodes`."""

PREFIX = f"{PROJECT}:"

LARGEST_FILE = 4 * 2**20
"""Bytes. A thousand clusters take one or two hundred kilobytes; a larger file is a mistake."""


EXTENDS = "extends"
"""Key of the files that a stack file is merged over (extends.py)."""

BaseReader = Callable[[str], tuple[str, str]]
"""The name for messages and the text of a base, by its path from the stack file's folder. Raises StackFileError."""

PULUMIS_OWN = ("secretsprovider", "encryptedkey", "encryptionsalt", "environment")
"""Other keys of Pulumi in a stack file, beside `config` (pkg/workspace, ProjectStack)."""

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

    def error(self, findings: Iterable[Finding]) -> StackFileError:
        """An error of the findings, with their lines and columns."""
        return StackFileError([self._placed(each) for each in findings], self.name)

    def _placed(self, finding: Finding) -> Finding:
        if not finding.path:
            return finding
        path = ("config", *finding.path)
        span = self.document.span(path, of_key=finding.rule == UNKNOWN_FIELD)
        return replace(finding, line=span.line, column=span.column, end_column=span.end_column, file=span.file)


def with_prefix(prefix: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The values whose keys have the prefix, by the rest of the key."""
    return {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}


def read(file: Path) -> str:
    """The text of a file. Raises StackFileError if it cannot be read, is too large or is not UTF-8."""
    try:
        if file.is_dir():
            raise _refused(file, "is a folder: name a stack file in it", UNREADABLE)
        with file.open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
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
    """The stack file merged over its bases. Raises StackFileError as `stack_file` does."""
    if f"{PREFIX}{EXTENDS}" not in file.own_config:
        return file
    # Most files have no base.
    from core.extends import merged_over_bases

    return merged_over_bases(file, read_base)


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


def plain_values(file: Path) -> dict[str, Any]:
    """All values of a stack file merged over its bases, with plain numbers. Raises StackFileError as `read` and
    `stack_file` do.

    Write a copy of them by `as_yaml`.
    """
    values: dict[str, Any] = json.loads(json.dumps(stack_file(file, read(file)).document.value))
    # A copy may be in another folder than the bases.
    (values.get("config") or {}).pop(f"{PREFIX}{EXTENDS}", None)
    return values


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
