"""External manifests: Kubernetes YAML in files or at URLs, cached between runs.

Fetching and rendering take seconds. The results are kept in the user's cache folder: one file for each location, with a
fingerprint of its sources.
"""

import hashlib
import http.client
import json
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from .cache import cache_folders, keep_file
from .crds.definitions import are_kept, referred

Objects = list[dict[str, Any]]

PINNED = "pinned"
"""Fingerprint of locations that never change."""

_SECONDS = 60
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
    return objects if cached["fingerprint"] == fingerprint and are_kept(objects) else None


def keep(location: str, fingerprint: str, objects: Objects) -> None:
    """Caches the objects, if the cache can be written to."""
    keep_file(_folder(), _name(location), json.dumps({"fingerprint": fingerprint, "objects": objects}))


def _text(location: str) -> str:
    try:
        if "://" not in location:
            return Path(location).read_text()
        # Uses the proxies of the environment, as kubectl and git do.
        with urllib.request.urlopen(location, timeout=_SECONDS) as response:  # noqa: S310 -- any that the stack names
            return str(response.read().decode())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ManifestError(f"{location} cannot be read: {error}") from error


def _folder() -> Path:
    return cache_folders("manifests")[0]


def _name(location: str) -> str:
    # Files of an older layout are named by the digest of the location alone.
    return f"{hashlib.sha256(f'referred {location}'.encode()).hexdigest()}.json"
