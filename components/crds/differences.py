"""What applying definitions changes in the cluster, for readers of a preview."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import live
from .definitions import Body, Definition, content

_NAMED = 10
"""So many fields are named in a message; of more only the number is reported."""

Fields = dict[str, Any]
"""What a schema requires of each field, by the field's path."""


def differences(context: str | None, definitions: Iterable[Definition], manager: str) -> Iterator[str]:
    """A line for each definition that is in the cluster and that applying the wanted one changes.

    Raises ClusterUnreachableError.
    """
    for each in definitions:
        found = live.metadata(context, each.name)
        if found is None:
            continue
        if (found.get("annotations") or {}).get(live.DIGEST_ANNOTATION) == each.digest:
            # Who replaces the schema owns the list of versions from then on, which is one value.
            if not live.owns_versions(found, manager):
                others = ", ".join(live.other_managers(found, manager)) or "others"
                yield f"CRD {each.name} was changed by {others}: an update sets it right"
            continue
        if (body := live.read(context, each.name)) and (changes := describe(body, content(each.digest))):
            yield f"CRD {each.name} changes: {changes}"


def describe(before: Body, after: Body) -> str:
    """What another definition changes: `adds v1 spec.authOptions; removes v1alpha1`. Empty where nothing is changed."""
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
"""What has paths of its own, and what no object depends on."""


def _topmost(paths: Iterable[str]) -> list[str]:
    """Without what lies below another one."""
    found: list[str] = []
    for path in sorted(paths):
        if not found or not path.startswith((f"{found[-1]}.", f"{found[-1]} ")):
            found.append(path)
    return found


def _named(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return f"{', '.join(paths[:_NAMED])}{more}"
