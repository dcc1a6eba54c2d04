"""Volcano's own manifest for tests."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from components.manifest_files import read
from local.tools import VOLCANO


@pytest.fixture(scope="session")
def manifest_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pinned Volcano's manifest. The definitions' schemas are left out: a megabyte that every test would carry."""
    objects = read(str(VOLCANO.share("installer") / "volcano-development.yaml"))
    for definition in (body for body in objects if body["kind"] == "CustomResourceDefinition"):
        for version in definition["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"] = {"type": "object"}
    file = tmp_path_factory.mktemp("volcano") / "volcano.yaml"
    file.write_text(yaml.dump_all(objects, Dumper=yaml.CSafeDumper))
    return file


@pytest.fixture
def manifest(manifest_file: Path) -> list[dict[str, Any]]:
    """Its objects."""
    return read(str(manifest_file))
