"""A stack file merged over its bases, as lines of YAML. Pure functions."""

import json
import re
from collections.abc import Iterator
from typing import Any

from core.messages import may_be_secret
from core.problems import Path
from core.secrets import secret_in
from core.stack_file import EXTENDS, PREFIX, StackFile
from core.yaml_reader.scalars import Node, NotPlainError, Rewritten, Span, resolve

_HIDDEN = '"***"'

_PLAIN = re.compile(r"[A-Za-z_/.][\w./@+-]*(:[\w./@+-]+)*|[0-9][\w.]*")
"""Texts that need no quotes, unless they would be read as something else."""

_COLUMN = 60
"""Where origins begin, unless the line is longer."""

Line = tuple[str, Span | None]
"""Its text, and the place of its value; None if it has none of its own."""


def lines(file: StackFile, *, origin: bool = False, valid: bool = True) -> Iterator[str]:
    """The merged file, line by line.

    `origin`: with the file and the line of each value as a comment. `valid`: `check` accepts the file, so that it has
    no secrets; otherwise values are hidden whose keys are about secrets.
    """
    for text, span in _Writer(valid).root(file):
        yield f"{text:{_COLUMN}}  # {span.file or file.name}:{span.line}" if origin and span else text


class _Writer:
    def __init__(self, valid: bool) -> None:
        self._valid = valid

    def root(self, file: StackFile) -> Iterator[Line]:
        config = file.document.root.children.get("config")
        yield "config:", None
        for key, child in config.children.items() if config else ():
            if key != f"{PREFIX}{EXTENDS}":
                yield from _indented(self._entry(str(key), child, (key,)))

    def _entry(self, key: str, node: Node, path: Path) -> Iterator[Line]:
        if not self._nested(node, path):
            yield f"{_text(key)}: {self._scalar(node, path)}", node.span
            return
        yield f"{_text(key)}:", None
        yield from _indented(self._nodes(node, path))

    def _nodes(self, node: Node, path: Path) -> Iterator[Line]:
        """The lines of a mapping or list that is not empty."""
        for step, child in node.children.items():
            below = (*path, step)
            if isinstance(step, str):
                yield from self._entry(step, child, below)
            elif not self._nested(child, below):
                yield f"- {self._scalar(child, below)}", child.span
            else:
                yield from _item(self._nodes(child, below))

    def _nested(self, node: Node, path: Path) -> bool:
        return bool(node.children) and not self._hidden(node.value, path)

    def _scalar(self, node: Node, path: Path) -> str:
        value = node.value
        if self._hidden(value, path):
            return _HIDDEN
        if isinstance(value, Rewritten):
            return value.written
        return _text(value) if isinstance(value, str) else json.dumps(value)

    def _hidden(self, value: Any, path: Path) -> bool:
        """Whether a value is a secret, or may be one."""
        if isinstance(value, dict):
            return list(value) == ["secure"]
        if isinstance(value, str) and secret_in(value):
            return True
        # `check` does not judge the keys of other programs.
        checked = self._valid and str(path[0]).startswith(PREFIX)
        return not checked and isinstance(value, str | int | float) and may_be_secret(path)


def _item(found: Iterator[Line]) -> Iterator[Line]:
    for number, (text, span) in enumerate(found):
        yield f"{'  ' if number else '- '}{text}", span


def _indented(found: Iterator[Line]) -> Iterator[Line]:
    for text, span in found:
        yield f"  {text}", span


def _text(text: str) -> str:
    """A text as YAML: in quotes if it would be read as something else."""
    try:
        plain = bool(_PLAIN.fullmatch(text)) and resolve(text) == text
    except NotPlainError:
        plain = False
    if plain:
        return text
    # YAML refuses control characters, and folds its further line breaks, U+0085 and U+2028.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in quoted)
