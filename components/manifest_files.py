"""Manifests of others: YAML of Kubernetes in files or behind URLs, and what has been made of them, kept between runs.

What takes seconds to fetch or render is kept in the user's cache folder: one file for each location, with a fingerprint
of all that was read for it.
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
"""Fingerprint of what never changes."""

_SECONDS = 60
"""A server that has not answered by then is given up."""


class ManifestError(Exception):
    """A manifest cannot be had; the text says why."""


class UnexpectedManifestError(ManifestError):
    """A manifest, or a rendered tree, is not of the wanted program and release."""


def read(location: str, *, pinned: bool = False) -> Objects:
    """The objects of a manifest, a file or a URL; of definitions, references (`crds.definitions`).

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
    """The objects in the text of a manifest, definitions as references; `what` in messages. Raises ManifestError."""
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
    try:
        return referred(objects)
    except OSError as error:
        raise ManifestError(
            f"the definitions in {what} cannot be kept: {error}. Set RAY_PLATFORM_CACHE to a folder that can be written"
        ) from error


def kept(location: str, fingerprint: str) -> Objects | None:
    """What was kept of a location, if it has that fingerprint."""
    try:
        there = json.loads((_folder() / _name(location)).read_text())
    except (OSError, ValueError):
        return None
    objects: Objects = there["objects"]
    return objects if there["fingerprint"] == fingerprint and are_kept(objects) else None


def keep(location: str, fingerprint: str, objects: Objects) -> None:
    """Keeps it, where the cache can be written to."""
    keep_file(_folder(), _name(location), json.dumps({"fingerprint": fingerprint, "objects": objects}))


def _text(location: str) -> str:
    try:
        if "://" not in location:
            return Path(location).read_text()
        # By the proxies of the environment, as kubectl and git do.
        with urllib.request.urlopen(location, timeout=_SECONDS) as response:  # noqa: S310 -- any that the stack names
            return str(response.read().decode())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ManifestError(f"{location} cannot be read: {error}") from error


def _folder() -> Path:
    return cache_folders("manifests")[0]


def _name(location: str) -> str:
    # Files of another layout lie under the digest of the location alone.
    return f"{hashlib.sha256(f'referred {location}'.encode()).hexdigest()}.json"
