"""Kueue's own kustomize tree for tests."""

from pathlib import Path
from typing import Any

import pytest

from components.manifest_files import read


@pytest.fixture
def tree(kueue_file: Path) -> list[dict[str, Any]]:
    """The objects of the tree."""
    return read(str(kueue_file))
