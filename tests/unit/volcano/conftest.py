"""Volcano's own manifest for tests."""

from pathlib import Path
from typing import Any

import pytest

from components.manifest_files import read


@pytest.fixture
def manifest(manifest_file: Path) -> list[dict[str, Any]]:
    """The objects of the manifest."""
    return read(str(manifest_file))
