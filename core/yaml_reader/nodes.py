"""Values of a YAML document, each with the place where it is written."""

from typing import Any, NamedTuple


class Span(NamedTuple):
    """Where something is written, from line 1 and column 1; it ends before `end_column`, None if on another line."""

    line: int
    column: int
    end_column: int | None = None


class DocumentError(ValueError):
    """Text is not YAML that can be used."""

    def __init__(self, message: str, span: Span, rule: str = "yaml") -> None:
        """Keep what is wrong, where, and by which rule."""
        super().__init__(message)
        self.message, self.span, self.rule = message, span, rule


class Node:
    """A value, with its place and those of what it holds."""

    __slots__ = ("children", "depth", "key_spans", "size", "span", "value")

    def __init__(self, value: Any, span: Span) -> None:
        """A value that holds nothing."""
        self.value = value
        self.span = span
        self.size = 1
        self.depth = 0
        self.children: dict[str | int, Node] = _NO_CHILDREN
        self.key_spans: dict[str | int, Span] = _NO_KEYS


# Shared by all scalars, which are most of a file's values.
_NO_CHILDREN: dict[str | int, Node] = {}
_NO_KEYS: dict[str | int, Span] = {}
