"""Renders a kustomize tree with kubectl, or with kustomize where there is no kubectl. Nothing is applied."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

_RENDERERS = (("kubectl", "kustomize"), ("kustomize", "build"))
_SECONDS = 300
"""A remote tree is a git clone; one that takes longer is given up."""


class KustomizeError(Exception):
    """The tree cannot be rendered; the text says why."""


def render(location: str, *, pinned: bool = False) -> list[dict[str, Any]]:
    """The objects of the tree at `location`, a folder or a URL.

    `pinned`: what is there never changes, as at a release's tag: fetched once, it is kept in the user's cache folder.
    Raises KustomizeError where neither kubectl nor kustomize is on the PATH, or the rendering fails.
    """
    cached = _cache_folder() / f"{hashlib.sha256(location.encode()).hexdigest()}.yaml"
    if pinned and cached.is_file():
        return _objects(cached.read_text(), location)
    text = _run(location)
    objects = _objects(text, location)
    if pinned:
        _keep(cached, text)
    return objects


def _run(location: str) -> str:
    command = next((found for found in _RENDERERS if shutil.which(found[0])), None)
    if command is None:
        raise KustomizeError(
            f"neither kubectl nor kustomize is on the PATH, and one is needed to render {location}: install kubectl"
        )
    try:
        done = subprocess.run([*command, location], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise KustomizeError(f"{' '.join(command)} {location} took longer than {_SECONDS} s") from error
    if done.returncode:
        raise KustomizeError(
            f"{' '.join(command)} {location} failed: {done.stderr.strip()}. "
            "Where GitHub cannot be reached set operator.location to a folder or mirror that holds KubeRay's tree"
        )
    return done.stdout


def _objects(text: str, location: str) -> list[dict[str, Any]]:
    # The CRDs are four megabytes: libyaml reads them in a second, Python's own parser in twenty.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        objects = [document for document in yaml.load_all(text, Loader=loader) if document]
    except yaml.YAMLError as error:
        raise KustomizeError(f"what {location} renders to is not YAML: {error}") from error
    if not objects:
        raise KustomizeError(f"{location} renders to nothing")
    return objects


def _cache_folder() -> Path:
    """`kustomize` in RAY_PLATFORM_CACHE, else in the user's cache folder."""
    cache = os.environ.get("RAY_PLATFORM_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(cache) if cache else user / "ray-platform") / "kustomize"


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)
