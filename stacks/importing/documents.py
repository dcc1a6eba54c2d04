"""The YAML documents of a file, with the line on which each part stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import yaml

from ..settings import LARGEST_FILE
from .notes import Note, Path, RefusedError


@dataclass(frozen=True)
class Document:
    """One document of a file."""

    value: Any
    node: yaml.Node
    first_line: int = 1

    def line(self, path: Path) -> int:
        """The line on which the part at `path`, or what of it is there, begins."""
        node, line = self.node, self.first_line + self.node.start_mark.line
        for index, step in enumerate(path):
            if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
                # YAML in a text, which begins on the line below the key.
                inner = yaml.compose(node.value, Loader=yaml.CSafeLoader)
                return Document(None, inner, line + 1).line(path[index:]) if inner else line
            found = next((each for each in _children(node) if each[0] == str(step)), None)
            if found is None:
                break
            _, key, node = found
            line = self.first_line + key.start_mark.line
        return line


def documents(file: File) -> list[Document]:
    """The documents of a file that are not empty. Raises RefusedError where it cannot be read or is not YAML."""
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise RefusedError(Note((), f"it has more than {LARGEST_FILE} bytes", "give a smaller file"))
        loader = yaml.CSafeLoader(file.read_text(encoding="utf-8"))
        found = []
        while loader.check_node():
            node = loader.get_node()
            found.append(Document(loader.construct_document(node), node))
    except OSError as error:
        raise RefusedError(Note((), f"it cannot be read: {error.strerror}", "give a file")) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RefusedError(Note((), f"it is not YAML: {error}".replace("\n", " "), "correct it")) from error
    return [each for each in found if each.value is not None]


def _children(node: yaml.Node) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
    """What a mapping or list holds: the step to it, where it begins, and itself."""
    if isinstance(node, yaml.MappingNode):
        yield from ((str(key.value), key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((str(index), each, each) for index, each in enumerate(node.value))
