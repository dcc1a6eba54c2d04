"""KubeRay's kustomize tree for tests, and a kubectl that renders it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

RENDERED = Path(__file__).parent / "kuberay_config_default_1_6_2.yaml"


@pytest.fixture
def tree() -> list[dict[str, Any]]:
    """The objects of KubeRay 1.6.2's `config/default`."""
    return list(yaml.safe_load_all(RENDERED.read_text()))


@pytest.fixture
def kubectl_that_renders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `kubectl` alone on the PATH that renders any location to the tree and notes each call in the returned file."""
    calls = tmp_path / "calls"
    calls.touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    kubectl = programs / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\nwhile IFS= read -r line; do echo "$line"; done < {RENDERED}\n'
    )
    kubectl.chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("RAY_PLATFORM_CACHE", str(tmp_path / "cache"))
    return calls
