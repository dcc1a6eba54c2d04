"""YAML documents: values with their lines and columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.reader import ReaderError

from core.problems import Path

from .composer import Composer, mark_of
from .scalars import DocumentError, Node, Span

__all__ = ["Document", "DocumentError", "Node", "Span", "document", "documents"]


@dataclass(frozen=True)
class Document:
    """One YAML document."""

    root: Node

    @property
    def value(self) -> Any:
        """Mappings, lists, text, numbers, booleans and None."""
        return self.root.value

    def span(self, path: Path, of_key: bool = False) -> Span:
        """Span of the value at a path. For a mapping or list, or with `of_key`, it is the span of the key.

        For a missing value it is the span of its nearest existing parent.
        """
        node, span = self.root, self.root.span
        for index, step in enumerate(path):
            child = node.children.get(step)
            if child is None:
                break
            key = child.children or child.value is None or (of_key and index == len(path) - 1)
            span = node.key_spans[step] if key and step in node.key_spans else child.span
            node = child
        return span


def document(text: str) -> Document | None:
    """The document in a text; None if the text is empty. Raises DocumentError."""
    found = documents(text)
    first = next(found, None)
    if second := next(found, None):
        raise DocumentError("a second document begins here: keep one in the file", second.root.span)
    return first


def documents(text: str) -> Iterator[Document]:
    """The documents in a text, one by one. Raises DocumentError if one is not YAML, or exceeds the limits."""
    try:
        parser = CParser(text)
        while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                yield Document(Composer(parser).compose())
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text) from error
    except ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        span = Span(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise DocumentError(f"a control character, U+{error.character:04X}: remove it", span) from error


def _not_yaml(error: yaml.MarkedYAMLError, text: str) -> DocumentError:
    mark = mark_of(error.problem_mark or error.context_mark)
    span = Span(mark.line + 1, mark.column + 1)
    line = text.splitlines()[mark.line : mark.line + 1]
    if line and line[0][mark.column : mark.column + 1] == "\t":
        return DocumentError("a tab: indent with spaces", span)
    context = f" {error.context}" if error.context else ""
    return DocumentError(f"this is not YAML: {error.problem}{context}; correct it here or just before", span)
