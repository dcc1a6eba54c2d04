"""Values of YAML and JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.problems import Path


def inside(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The value and all values in its mappings and lists, each with its path, and before those in it."""
    yield path, value
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from inside(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from inside(item, (*path, index))
