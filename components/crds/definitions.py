"""CustomResourceDefinitions by their digests.

KubeRay's four are a megabyte each, so they are parsed once. When a manifest is read, each definition is written to a
cache file that is named by its digest. The manifest has a short reference in its place.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from core.body import Body
from core.files import cache_folders, keep_file

KIND = "CustomResourceDefinition"

_FILES = "definitions"
_DIGEST = "digest"
_RESOURCE = "resource"


class MissingDefinitionError(Exception):
    """No cache folder has the definition with that digest; the message names the folders."""


@dataclass(frozen=True)
class Definition:
    """A CustomResourceDefinition without its content."""

    name: str
    """`rayclusters.ray.io`."""

    digest: str
    """SHA-256 of its content, in hexadecimal."""

    resource: str
    """Its kind, as `resource_of` returns it."""


def referred(objects: Iterable[Body]) -> list[Body]:
    """The objects with a reference in place of each definition. The content is written to the cache, narrowed to
    what the program of the definition can decode.

    Raises OSError if no cache folder can be written to.
    """
    return [_reference(body) if body["kind"] == KIND and "spec" in body else body for body in objects]


def definitions_of(objects: Iterable[Body]) -> list[Definition]:
    return [
        Definition(body["metadata"]["name"], body[_DIGEST], body[_RESOURCE])
        for body in objects
        if body["kind"] == KIND and _DIGEST in body
    ]


def content(digest: str) -> Body:
    """The content of a definition. Raises MissingDefinitionError."""
    folders = cache_folders(_FILES)
    for folder in folders:
        try:
            text = (folder / f"{digest}.json").read_text()
        except OSError:
            continue
        if hashlib.sha256(text.encode()).hexdigest() == digest:
            return dict(json.loads(text))
    raise MissingDefinitionError(
        f"a definition with the digest {digest} is in none of {', '.join(map(str, folders))}, where the program puts "
        "it. Run the command again; if that does not help, set RAY_PLATFORM_CACHE to a folder that can be written to"
    )


def are_kept(objects: Iterable[Body]) -> bool:
    """Whether the content of all definitions that objects refer to is in the cache."""
    folders = cache_folders(_FILES)
    return all(
        any((folder / f"{each.digest}.json").is_file() for folder in folders) for each in definitions_of(objects)
    )


def whole(objects: Iterable[Body]) -> list[Body]:
    """The objects with the content of their definitions. Raises MissingDefinitionError."""
    return [content(body[_DIGEST]) if body["kind"] == KIND and _DIGEST in body else body for body in objects]


def resource_of(body: Body) -> str:
    """The kind of a definition for `dynamic.guards.custom_objects`, in the stored version: another version may need a
    webhook that does not exist any more."""
    spec = body["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    return f"{spec['names']['plural']}.{version}.{spec['group']}"


def _reference(body: Body) -> Body:
    from components.crds.decoding import decodable_definition  # only when a manifest is read the first time

    text = json.dumps(decodable_definition(body), sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    if not any(keep_file(folder, f"{digest}.json", text) for folder in cache_folders(_FILES)):
        raise OSError(f"none of {', '.join(map(str, cache_folders(_FILES)))} can be written to")
    return {
        "apiVersion": body["apiVersion"],
        "kind": KIND,
        "metadata": {"name": body["metadata"]["name"]},
        _DIGEST: digest,
        _RESOURCE: resource_of(body),
    }
