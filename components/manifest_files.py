"""Manifests of others: YAML of Kubernetes in files or behind URLs, and what has been made of them, kept between runs.

What takes seconds to fetch or render is kept in the user's cache folder: one file for each location, with a fingerprint
of all that was read for it.
"""

import hashlib
import http.client
import json
import os
import tempfile
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

Objects = list[dict[str, Any]]

PINNED = "pinned"
"""Fingerprint of what never changes."""

_SECONDS = 60
"""A server that has not answered by then is given up."""


class ManifestError(Exception):
    """A manifest cannot be had; the text says why."""


def read(location: str, *, pinned: bool = False) -> Objects:
    """The objects of a manifest, a file or a URL.

    `pinned`: what is there never changes, as at a release's tag: it is fetched once.
    Raises ManifestError.
    """
    if pinned and (there := kept(location, PINNED)):
        return there
    objects = parsed(_text(location), f"what {location} holds")
    if pinned:
        keep(location, PINNED, objects)
    return objects


def parsed(text: str, what: str) -> Objects:
    """The objects in the text of a manifest, `what` in messages. Raises ManifestError."""
    # CRDs are megabytes: libyaml reads them in a second, Python's own parser in twenty.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # As JSON, which Kubernetes reads too: the same values whether they come from the cache or not.
        objects: Objects = json.loads(
            json.dumps([document for document in yaml.load_all(text, Loader=loader) if document])
        )
    except (yaml.YAMLError, TypeError) as error:
        raise ManifestError(f"{what} is not YAML of Kubernetes: {error}") from error
    if not objects:
        raise ManifestError(f"{what} is nothing")
    return objects


def kept(location: str, fingerprint: str) -> Objects | None:
    """What was kept of a location, if it has that fingerprint."""
    try:
        there = json.loads(_file(location).read_text())
    except (OSError, ValueError):
        return None
    objects: Objects = there["objects"]
    return objects if there["fingerprint"] == fingerprint else None


def keep(location: str, fingerprint: str, objects: Objects) -> None:
    """Keeps it. A folder that cannot be written to, as in some containers, costs time and nothing else."""
    path = _file(location)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            json.dump({"fingerprint": fingerprint, "objects": objects}, file)
        Path(file.name).replace(path)


def _text(location: str) -> str:
    try:
        if "://" not in location:
            return Path(location).read_text()
        # By the proxies of the environment, as kubectl and git do.
        with urllib.request.urlopen(location, timeout=_SECONDS) as response:  # noqa: S310 -- any that the stack names
            return str(response.read().decode())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ManifestError(f"{location} cannot be read: {error}") from error


def _file(location: str) -> Path:
    """In `manifests` in RAY_PLATFORM_CACHE, else in the user's cache folder."""
    cache = os.environ.get("RAY_PLATFORM_CACHE")
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = (Path(cache) if cache else user / "ray-platform") / "manifests"
    return folder / f"{hashlib.sha256(location.encode()).hexdigest()}.json"
