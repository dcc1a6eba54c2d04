"""The parts of a file to import."""

from collections.abc import Iterator, Mapping
from typing import Any

from core.problems import Path
from core.values import inside
from stacks.launcher_files.reader import has_content


def leaves(value: Any) -> Iterator[Path]:
    """The paths of all values that contain no others and are not empty."""
    for path, each in inside(value):
        if not isinstance(each, Mapping | list) and has_content(each):
            yield path
