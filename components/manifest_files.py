"""External manifests: Kubernetes YAML in files, at URLs, or rendered from kustomize trees, cached between runs.

Fetching and rendering take seconds. The results are kept in the user's cache folder: one file for each location, with a
fingerprint of its sources. Nothing is applied.
"""

import hashlib
import http.client
import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from components.crds.definitions import are_kept, referred
from core.files import cache_folders, keep_file

Objects = list[dict[str, Any]]

PINNED = "pinned"
"""Fingerprint of locations that never change."""

_FORMAT = 2
"""Number of the format of cached files. To be raised when other objects are made of the same text."""

_DOWNLOAD_SECONDS = 60
"""Timeout of a download."""


class ManifestError(Exception):
    """A manifest cannot be read; the message has the reason."""


class UnexpectedManifestError(ManifestError):
    """A manifest, or a rendered tree, is not that of the expected program and release."""


def read(location: str, *, pinned: bool = False) -> Objects:
    """The objects of a manifest, a file or a URL. Definitions are replaced by references (`crds.definitions`).

    `pinned`: the location never changes, as a release's tag, and is fetched once.
    Raises ManifestError.
    """
    if pinned and (cached := kept(location, PINNED)):
        return cached
    objects = parsed(_text(location), f"what {location} holds")
    if pinned:
        keep(location, PINNED, objects)
    return objects


def parsed(text: str, what: str) -> Objects:
    """The objects in the text of a manifest, definitions as references; `what` in messages. Raises ManifestError."""
    # CRDs are megabytes: libyaml reads them in a second, Python's own parser in twenty.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Converted to JSON, so that values from the cache and from YAML are the same.
        objects: Objects = json.loads(
            json.dumps([document for document in yaml.load_all(text, Loader=loader) if document])
        )
    except (yaml.YAMLError, TypeError) as error:
        raise ManifestError(f"{what} is not YAML of Kubernetes: {error}") from error
    if not objects:
        raise ManifestError(f"{what} is nothing")
    try:
        return referred(objects)
    except OSError as error:
        raise ManifestError(
            f"the definitions in {what} cannot be kept: {error}. Set RAY_PLATFORM_CACHE to a folder that can be written"
        ) from error


def kept(location: str, fingerprint: str) -> Objects | None:
    """The cached objects of a location, if the fingerprint is the same."""
    try:
        cached = json.loads((_folder() / _name(location)).read_text())
    except (OSError, ValueError):
        return None
    objects: Objects = cached["objects"]
    current = cached["fingerprint"] == fingerprint and cached.get("format") == _FORMAT
    return objects if current and are_kept(objects) else None


def keep(location: str, fingerprint: str, objects: Objects) -> None:
    """Caches the objects, if the cache can be written to."""
    keep_file(
        _folder(), _name(location), json.dumps({"format": _FORMAT, "fingerprint": fingerprint, "objects": objects})
    )


def _text(location: str) -> str:
    try:
        if "://" not in location:
            return Path(location).read_text()
        # Uses the proxies of the environment, as kubectl and git do.
        with urllib.request.urlopen(location, timeout=_DOWNLOAD_SECONDS) as response:  # noqa: S310 -- any that the stack names
            return str(response.read().decode())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ManifestError(f"{location} cannot be read: {error}") from error


def _folder() -> Path:
    return cache_folders("manifests")[0]


def _name(location: str) -> str:
    return f"{hashlib.sha256(location.encode()).hexdigest()}.json"


_RENDERERS = (("kubectl", "kustomize"), ("kustomize", "build"))
_RENDERING_SECONDS = 300
"""Timeout of a rendering, which clones a remote tree with git."""

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""Names of the file that makes a folder a kustomization (api/konfig/general.go of kubernetes-sigs/kustomize)."""

_READS_NO_FILE = frozenset(
    {
        "apiVersion", "kind", "metadata", "namespace", "namePrefix", "nameSuffix", "labels", "commonLabels",
        "commonAnnotations", "images", "replicas",
    }
)  # fmt: skip
"""Fields of a kustomization that refer to no other file (api/types/kustomization.go)."""


class KustomizeError(ManifestError):
    """The tree cannot be rendered; the message has the reason."""


def render(location: str, *, pinned: bool = False) -> list[dict[str, Any]]:
    """The objects of the tree at `location`, a folder or a URL.

    `pinned`: the location never changes, as a release's tag, and is fetched once. A folder is rendered again if one of
    its files or the renderer has changed. Any other location, and a folder that may refer to other files, is rendered
    each time.
    Raises KustomizeError if neither kubectl nor kustomize is on the PATH, or the rendering fails;
    ManifestError if the result is not a manifest.
    """
    fingerprint = PINNED if pinned else _fingerprint(location)
    if fingerprint and (cached := kept(location, fingerprint)):
        return cached
    objects = parsed(_run(location), f"what {location} renders to")
    # A file may have changed during the rendering.
    if fingerprint and (pinned or fingerprint == _fingerprint(location)):
        keep(location, fingerprint, objects)
    return objects


def _run(location: str) -> str:
    command = next((renderer for renderer in _RENDERERS if shutil.which(renderer[0])), None)
    if command is None:
        raise KustomizeError(
            f"neither kubectl nor kustomize is on the PATH, and one is needed to render {location}: install kubectl"
        )
    try:
        done = subprocess.run(
            [*command, location], capture_output=True, text=True, timeout=_RENDERING_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise KustomizeError(f"{' '.join(command)} {location} took longer than {_RENDERING_SECONDS} s") from error
    if done.returncode:
        raise KustomizeError(
            f"{' '.join(command)} {location} failed: {done.stderr.strip()}. "
            "Where GitHub cannot be reached, set `location` next to its `version` in the stack file (of operator, or "
            "of kueue in scheduler) to a folder or mirror that holds the tree"
        )
    return done.stdout


def _fingerprint(location: str) -> str | None:
    """Fingerprint of the renderer and all files that it reads for a folder; None if the files are not known."""
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
    """The files that a kustomization reads itself, or None if not known; adds its base folders to `folders`."""
    files = [folder / name for name in _KUSTOMIZATIONS if (folder / name).is_file()]
    if len(files) != 1:
        return None
    try:
        kustomization = yaml.safe_load(files[0].read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        return None
    if not isinstance(kustomization, dict) or kustomization.keys() - _READS_NO_FILE - {"resources"}:
        return None
    for entry in kustomization.get("resources") or []:
        path = folder / str(entry)
        if path.is_dir():
            folders.append(path.resolve())
        elif path.is_file():
            files.append(path)
        else:
            return None
    return files
