"""Renders a kustomize tree with kubectl, or with kustomize where there is no kubectl. Nothing is applied.

Rendering KubeRay's tree takes seconds, of each preview and update. So what a tree renders to is kept in the user's
cache folder: one file for each location, with a fingerprint of all that the rendering read.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

_RENDERERS = (("kubectl", "kustomize"), ("kustomize", "build"))
_SECONDS = 300
"""A remote tree is a git clone; one that takes longer is given up."""

_PINNED = "pinned"
"""Fingerprint of what never changes."""

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file that makes a folder a kustomization (api/konfig/general.go of kubernetes-sigs/kustomize)."""

_READS_NO_FILE = frozenset(
    {
        "apiVersion", "kind", "metadata", "namespace", "namePrefix", "nameSuffix", "labels", "commonLabels",
        "commonAnnotations", "images", "replicas",
    }
)  # fmt: skip
"""Fields of a kustomization that hold all they say (api/types/kustomization.go)."""


class KustomizeError(Exception):
    """The tree cannot be rendered; the text says why."""


def render(location: str, *, pinned: bool = False) -> list[dict[str, Any]]:
    """The objects of the tree at `location`, a folder or a URL.

    `pinned`: what is there never changes, as at a release's tag: it is fetched once. A folder is rendered again once
    one of its files has changed, or the renderer; any other location, and a folder that may read more than files of
    its own, each time.
    Raises KustomizeError where neither kubectl nor kustomize is on the PATH, or the rendering fails.
    """
    fingerprint = _PINNED if pinned else _fingerprint(location)
    cached = _cache_folder() / f"{hashlib.sha256(location.encode()).hexdigest()}.json"
    if fingerprint and (kept := _kept(cached, fingerprint)):
        return kept
    objects = _objects(_run(location), location)
    # A file may have changed while it was rendered.
    if fingerprint and (pinned or fingerprint == _fingerprint(location)):
        _keep(cached, fingerprint, objects)
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
        # As JSON, which Kubernetes reads too: the same values whether they come from the cache or not.
        objects: list[dict[str, Any]] = json.loads(
            json.dumps([document for document in yaml.load_all(text, Loader=loader) if document])
        )
    except (yaml.YAMLError, TypeError) as error:
        raise KustomizeError(f"what {location} renders to is not YAML of Kubernetes: {error}") from error
    if not objects:
        raise KustomizeError(f"{location} renders to nothing")
    return objects


def _fingerprint(location: str) -> str | None:
    """Of the renderer and all files that it reads for a folder; None where that cannot be told by looking."""
    programs = [found for name, _ in _RENDERERS if (found := shutil.which(name))]
    if not programs or not Path(location).is_dir():
        return None
    about = Path(programs[0]).stat()
    digest = hashlib.sha256(f"{programs[0]} {about.st_size} {about.st_mtime_ns}".encode())
    folders, seen = [Path(location).resolve()], set[Path]()
    while folders:
        folder = folders.pop()
        if folder in seen:
            continue
        seen.add(folder)
        files = _files(folder, folders)
        if files is None:
            return None
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file} {len(content)} ".encode())
            digest.update(content)
    return digest.hexdigest()


def _files(folder: Path, folders: list[Path]) -> list[Path] | None:
    """The files that a kustomization reads itself, or None; adds to `folders` those that it builds on."""
    files = [folder / name for name in _KUSTOMIZATIONS if (folder / name).is_file()]
    if len(files) != 1:
        return None
    try:
        said = yaml.safe_load(files[0].read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    if not isinstance(said, dict) or said.keys() - _READS_NO_FILE - {"resources"}:
        return None
    for entry in said.get("resources") or []:
        path = folder / str(entry)
        if path.is_dir():
            folders.append(path.resolve())
        elif path.is_file():
            files.append(path)
        else:
            return None
    return files


def _cache_folder() -> Path:
    """`kustomize` in RAY_PLATFORM_CACHE, else in the user's cache folder."""
    cache = os.environ.get("RAY_PLATFORM_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (Path(cache) if cache else user / "ray-platform") / "kustomize"


def _kept(path: Path, fingerprint: str) -> list[dict[str, Any]] | None:
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    objects: list[dict[str, Any]] = kept["objects"]
    return objects if kept["fingerprint"] == fingerprint else None


def _keep(path: Path, fingerprint: str, objects: list[dict[str, Any]]) -> None:
    # A folder that cannot be written to, as in some containers, costs time and nothing else.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump({"fingerprint": fingerprint, "objects": objects}, file)
        Path(file.name).replace(path)
