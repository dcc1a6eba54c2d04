"""Renders a kustomize tree with kubectl, or with kustomize if kubectl is missing. Nothing is applied.

Rendering takes seconds of each preview and update. So the result is cached with a fingerprint of all files that the
rendering read.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from .manifest_files import PINNED, ManifestError, keep, kept, parsed

_RENDERERS = (("kubectl", "kustomize"), ("kustomize", "build"))
_SECONDS = 300
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
    ManifestError if the result is no manifest.
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
        done = subprocess.run([*command, location], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise KustomizeError(f"{' '.join(command)} {location} took longer than {_SECONDS} s") from error
    if done.returncode:
        raise KustomizeError(
            f"{' '.join(command)} {location} failed: {done.stderr.strip()}. "
            "Where GitHub cannot be reached set location in the same place to a folder or mirror that holds the tree"
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
