"""Merging of a user's own words into a derived body."""

from typing import Any

_NAMES = ("groupName", "name")


def merge(base: Any, over: Any) -> Any:
    """`base` with `over` laid on it; neither is changed.

    As a JSON Merge Patch (RFC 7396): mappings merge key by key, null takes a key away, anything else replaces. Unlike
    one, a list whose items all have a `groupName` or a `name`, such as worker groups, containers, env and volumes,
    merges item by item: one of a known name is merged into it, others are added at the end.
    """
    if isinstance(base, dict) and isinstance(over, dict):
        merged = {**base, **{key: merge(base.get(key), value) for key, value in over.items()}}
        return {key: value for key, value in merged.items() if key not in over or over[key] is not None}
    if isinstance(base, list) and isinstance(over, list) and (name := _name_of(base, over)):
        return _merge_named(base, over, name)
    # With nothing below it, nulls in a mapping still mean "not there".
    return merge({}, over) if isinstance(over, dict) else over


def _name_of(base: list[Any], over: list[Any]) -> str | None:
    """The key that names the items of both lists, None where they have none."""
    items = [*base, *over]
    return next((key for key in _NAMES if all(isinstance(each, dict) and key in each for each in items)), None)


def _merge_named(base: list[Any], over: list[Any], name: str) -> list[Any]:
    merged = {item[name]: item for item in base}
    for item in over:
        merged[item[name]] = merge(merged.get(item[name], {}), item)
    return list(merged.values())
