"""The YAML documents of an imported file, with the line number of each part."""

from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from core.problems import Path
from core.stack_file import LARGEST_FILE
from core.yaml_reader import document as yaml_document

from .notes import Note, RefusedError


@dataclass(frozen=True)
class Document:
    """One document of a file."""

    yaml: yaml_document.Document

    first_line: int = 1
    """Line of the file on which the YAML begins."""

    @property
    def value(self) -> Any:
        """The parsed value of the document."""
        return self.yaml.value

    def line(self, path: Path) -> int:
        """The line of the part at `path`, or of its deepest existing parent."""
        node = self.yaml.root
        for index, step in enumerate(path):
            if step not in node.children:
                return self._line_within(node, path[:index], path[index:])
            node = node.children[step]
        return self._line_of(path)

    def _line_of(self, path: Path) -> int:
        return self.first_line + self.yaml.span(path).line - 1

    def _line_within(self, node: yaml_document.Node, outer: Path, inner: Path) -> int:
        """The line of a part inside a YAML text, which begins below the key; else the line of the part's parent."""
        line = self._line_of(outer)
        if not isinstance(node.value, str) or "\n" not in node.value:
            return line
        found = parsed(node.value, outer)
        return Document(found, line + 1).line(inner) if found else line


def parsed(text: str, path: Path) -> yaml_document.Document | None:
    """Parses the YAML text at `path`. Raises RefusedError."""
    try:
        return yaml_document.document(text)
    except yaml_document.DocumentError as error:
        raise RefusedError(Note(path, f"its line {error.span.line}: {error}")) from error


def documents(file: File) -> list[Document]:
    """The documents of a file that are not empty. Raises RefusedError if the file cannot be read or is not YAML."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise RefusedError(Note((), f"it has more than {LARGEST_FILE} bytes", "give a smaller file"))
        found = [Document(each) for each in yaml_document.documents(file.read_text(encoding="utf-8"))]
    except OSError as error:
        raise RefusedError(Note((), f"it cannot be read: {error.strerror}", "give a file")) from error
    except UnicodeDecodeError as error:
        raise RefusedError(Note((), "it is not text in UTF-8", "give a YAML file")) from error
    except yaml_document.DocumentError as error:
        raise RefusedError(Note((), str(error), line=error.span.line)) from error
    return [each for each in found if each.value is not None]
