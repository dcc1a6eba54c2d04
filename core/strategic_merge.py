"""Merges overrides of a user into a derived body, as the strategic merge patch of Kubernetes does.

Mappings merge key by key, and null removes a key. Lists that Kubernetes merges by a key of their items, such as
containers by `name`, merge item by item; other lists are replaced. `$patch: delete` in an item removes that item. An
item with only `$patch: replace` replaces the list with its other items. In a mapping, `$patch: replace` replaces the
mapping, and `$patch: delete` empties it (k8s.io/apimachinery, pkg/util/strategicpatch).

Not supported: `$retainKeys`, `$setElementOrder` and `$deleteFromPrimitiveList`, which are for programs.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from core.problems import Path, Problem, Problems

DIRECTIVE = "$patch"

MERGE_KEYS = {
    "workerGroupSpecs": ("groupName",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "ports": ("containerPort", "port"),
}
"""Lists that merge, with their merge keys: the first key that an item has identifies it (`patchMergeKey` in
k8s.io/api/core/v1/types.go; worker groups are KubeRay's). The protocol of a port is part of its key too."""

_Key = tuple[Any, ...]


def merge(base: Any, over: Any) -> Any:
    """`over` merged into `base`; both stay unchanged.

    Raises Problems, with paths in `over`, if a directive is unknown or an item of a merging list has no key.
    """
    return _merge(base, over, ())


def difference(base: Any, desired: Any) -> Any:
    """The patch from `base` to `desired`: `merge(base, difference(base, desired)) == desired`.

    A null counts as missing, as in the API server. No mapping may have a key `$patch`.
    """
    if not (isinstance(base, Mapping) and isinstance(desired, Mapping)):
        return _whole(desired)
    desired = {key: value for key, value in desired.items() if value is not None}
    removed = {key: None for key in base if key not in desired}
    changed = {
        key: _difference_at(key, base.get(key), value)
        for key, value in desired.items()
        if key not in base or _plain(base[key]) != _plain(value)
    }
    return {**removed, **changed}


def key_of(list_name: str | int, item: Any) -> _Key | None:
    """The merge key of an item; None if it has no key or the list does not merge."""
    name = next((each for each in _keys(list_name) if isinstance(item, Mapping) and each in item), None)
    if name is None or not isinstance(item[name], str | int):
        return None
    return (item[name], str(item.get("protocol") or "TCP")) if list_name == "ports" else (item[name],)


def place_of(fragment: Any, body: Any, path: Path) -> tuple[Path, bool]:
    """The part of a path of `body` that a fragment, merged into the body, sets; with the fragment's own indexes.

    The second value is whether the fragment decides the value: it sets the whole path, or replaces a parent of it.
    """
    found: Path = ()
    list_name: str | int = ""
    for step in path:
        at = _index_in(fragment, list_name, body, step) if isinstance(step, int) else step
        if not (at in fragment if isinstance(fragment, Mapping) else isinstance(at, int) and at >= 0):
            merges = isinstance(fragment, Mapping | list) and DIRECTIVE not in fragment
            return found, not merges
        fragment, body = fragment[at], part_of(body, step)
        found, list_name = (*found, at), step
    return found, True


def part_of(value: Any, *path: str | int) -> Any:
    """The part at a path of keys and indexes; None if there is none."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _keys(list_name: str | int) -> tuple[str, ...]:
    return MERGE_KEYS.get(list_name, ()) if isinstance(list_name, str) else ()


def _merge(base: Any, over: Any, path: Path) -> Any:
    if isinstance(over, Mapping):
        return _merge_mapping(base if isinstance(base, Mapping) else {}, over, path)
    if isinstance(over, list) and path and _keys(path[-1]) and all(isinstance(item, Mapping) for item in over):
        return _merge_list(base if isinstance(base, list) else [], over, path)
    return _plain(over)


def _merge_mapping(base: Mapping[str, Any], over: Mapping[str, Any], path: Path) -> dict[str, Any]:
    patch = {key: value for key, value in over.items() if key != DIRECTIVE}
    match over.get(DIRECTIVE):
        case None:
            kept = {key: value for key, value in base.items() if patch.get(key, value) is not None}
        case "replace":
            base, kept = {}, {}
        case "delete":
            return {}
        case unknown:
            raise Problems([_unknown_directive(path, unknown)])
    merged = {key: _merge(base.get(key), value, (*path, key)) for key, value in patch.items() if value is not None}
    return {**kept, **merged}


def _merge_list(base: list[Any], over: list[Any], path: Path) -> list[Any]:
    items = list(_checked(over, path))
    if any(item.get(DIRECTIVE) == "replace" for _, item in items):
        return [_merge({}, item, (*path, index)) for index, item in items if DIRECTIVE not in item]
    merged: dict[_Key, Any] = {}
    for index, item in enumerate(base):
        key = key_of(path[-1], item)
        merged[key if key and key not in merged else (None, index)] = item
    for index, item in items:
        key = key_of(path[-1], item)
        if key is None:
            raise Problems([_without_key((*path, index), item)])
        if item.get(DIRECTIVE) == "delete":
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), item, (*path, index))
    return list(merged.values())


def _checked(over: list[Any], path: Path) -> Iterator[tuple[int, Any]]:
    """The items with their indexes. Raises Problems if one has a directive that is not valid in a list."""
    for index, item in enumerate(over):
        directive = item.get(DIRECTIVE)
        if directive not in (None, "delete", "replace") or (directive == "replace" and len(item) > 1):
            raise Problems([_unknown_directive((*path, index), directive)])
        yield index, item


def _unknown_directive(path: Path, directive: Any) -> Problem:
    return Problem(
        (*path, DIRECTIVE),
        directive,
        f"{directive!r} is not allowed here: in a mapping, write replace or delete; in an item of a list, write "
        "delete, or add an item with only `$patch: replace`, so that the other items replace the list",
        "patch-directive",
    )


def _without_key(path: Path, item: Any) -> Problem:
    name = " or ".join(_keys(path[-2]))
    return Problem(path, item, f"has no {name}, which identifies the item to merge with: add it", "merge-key")


def _difference_at(name: str, base: Any, desired: Any) -> Any:
    if not (isinstance(desired, list) and _keys(name) and all(isinstance(item, Mapping) for item in desired)):
        return difference(base, desired)
    before = _by_key(name, base) if isinstance(base, list) else {}
    after = _by_key(name, desired)
    remaining = [key for key in before or () if key in (after or ())]
    in_order = after is not None and list(after)[: len(remaining)] == remaining
    if before is None or after is None or not in_order or (before and not remaining):
        return [{DIRECTIVE: "replace"}, *map(_whole, desired)]
    return [_item_difference(name, before.get(key), after.get(key)) for key in _changed(before, after)]


def _changed(before: dict[_Key, Any], after: dict[_Key, Any]) -> list[_Key]:
    keys = [*before, *(key for key in after if key not in before)]
    return [key for key in keys if _plain(before.get(key)) != _plain(after.get(key))]


def _item_difference(name: str, before: Any, after: Any) -> Any:
    if before is None:
        return _whole(after)
    merge_keys = {key: before[key] for key in (*_keys(name), *(["protocol"] * (name == "ports"))) if key in before}
    return {**merge_keys, **(difference(before, after) if after is not None else {DIRECTIVE: "delete"})}


def _by_key(name: str, items: list[Any]) -> dict[_Key, Any] | None:
    """The items by their keys; None if an item has no key, or two have the same."""
    found = {key: item for item in items if (key := key_of(name, item)) is not None}
    return found if len(found) == len(items) else None


def _whole(desired: Any) -> Any:
    """A patch that yields the value without a base. It replaces lists whose items a merge could not identify."""
    return difference({}, desired) if isinstance(desired, Mapping) else _plain(desired)


def _plain(value: Any) -> Any:
    """The value without the keys that are null."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _index_in(fragment: Any, list_name: str | int, body: Any, index: int) -> int:
    """The index in the fragment's list of the item at `index` in the body's list; -1 if the fragment does not have
    it."""
    if not isinstance(fragment, list):
        return -1
    key = key_of(list_name, part_of(body, index))
    if key is None:
        shift = sum(isinstance(item, Mapping) and item.get(DIRECTIVE) == "replace" for item in fragment)
        return index + shift if index + shift < len(fragment) else -1
    return next((place for place, item in enumerate(fragment) if key_of(list_name, item) == key), -1)
