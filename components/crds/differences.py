"""The changes of definitions in the cluster, for a preview."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import live
from .definitions import Body, Definition, content

_NAMED = 10
"""The most fields that a message names. Of the others it reports only the number."""

Fields = dict[str, Any]
"""The schema of each field, by the field's path."""


def differences(context: str | None, definitions: Iterable[Definition], manager: str) -> Iterator[str]:
    """A line for each live definition that the desired one changes.

    Raises ClusterUnreachableError.
    """
    for each in definitions:
        existing = live.metadata(context, each.name)
        if existing is None:
            continue
        if (existing.get("annotations") or {}).get(live.DIGEST_ANNOTATION) == each.digest:
            # The list of versions is one value: whoever replaces the schema becomes its owner.
            if not live.owns_versions(existing, manager):
                others = ", ".join(live.other_managers(existing, manager)) or "others"
                yield f"CRD {each.name} was changed by {others}: an update sets it right"
            continue
        if (body := live.read(context, each.name)) and (changes := describe(body, content(each.digest))):
            yield f"CRD {each.name} changes: {changes}"


def describe(before: Body, after: Body) -> str:
    """The differences of two definitions: `adds v1 spec.authOptions; removes v1alpha1`. Empty if they are equal."""
    old, new = _fields(before), _fields(after)
    parts = (
        ("adds", _topmost(new.keys() - old.keys())),
        ("removes", _topmost(old.keys() - new.keys())),
        ("changes", sorted(path for path in old.keys() & new.keys() if old[path] != new[path])),
    )
    return "; ".join(f"{verb} {_named(paths)}" for verb, paths in parts if paths)


def _fields(body: Body) -> Fields:
    found: Fields = {}
    for version in body["spec"]["versions"]:
        found[version["name"]] = {key: version.get(key) for key in ("served", "storage")}
        _walk(version["schema"]["openAPIV3Schema"], f"{version['name']} ", found)
    return found


def _walk(schema: Mapping[str, Any], path: str, found: Fields) -> None:
    for name, field in (schema.get("properties") or {}).items():
        below = f"{path}{name}"
        found[below] = {key: value for key, value in field.items() if key not in _NOT_COMPARED}
        _walk(field, f"{below}.", found)
    if isinstance(items := schema.get("items"), Mapping):
        _walk(items, path, found)
    if isinstance(values := schema.get("additionalProperties"), Mapping):
        _walk(values, f"{path}*.", found)


_NOT_COMPARED = {"properties", "items", "additionalProperties", "description"}
"""Keys with their own paths, and keys without effect on objects."""


def _topmost(paths: Iterable[str]) -> list[str]:
    """The paths without those below another path."""
    found: list[str] = []
    for path in sorted(paths):
        if not found or not path.startswith((f"{found[-1]}.", f"{found[-1]} ")):
            found.append(path)
    return found


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"
