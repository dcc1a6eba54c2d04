"""Reads a stack file: returns its settings, or all findings with their places. Does not use Pulumi."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.messages import findings, of_problems
from core.problems import UNKNOWN_FIELD, Finding, StackFileError, shown
from core.problems import Path as Place
from core.secrets import ADVICE, ADVICE_OUTSIDE, in_plain_text, is_secret_by_name, secret_in, secrets_of_command
from core.stack_file import EXTENDS, PREFIX, PROJECT, StackFile, read, stack_file
from core.values import inside
from stacks.checks.references import problems_of
from stacks.launcher_files.configuration import with_launcher_files
from stacks.objects.cml import plain_key, without_key
from stacks.settings import StackSettings

_SHORTEST_SECRET = 6
"""Characters of `://:x@`, the shortest text in a format of a secret."""


_NAMED = {"args", "metadata", "user_config", "volumeAttributes"}
"""Mappings whose values may be secrets by their names: of applications of Serve, jobs and volumes."""

_DIGIT = re.compile("[0-9]")
"""A text without a digit may be the name of something."""


def parse(values: Mapping[str, Any], group: int | None = None) -> StackSettings:
    """The settings from the values under `ray-platform:`, by key without that prefix.

    `group`: the group of tenants whose RayClusters are judged; None: all. Raises StackFileError.
    """
    secrets = [
        *plain_key(values),
        *(encrypted(path) for path, value in _inside(without_key(values)) if _is_encrypted(value)),
        *(in_plain_text(path, kind) for path, value in _inside(values) if (kind := _kind_of_secret(path, value))),
    ]
    hidden = [each.path for each in secrets]
    try:
        settings = _validated(values)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        found = findings(faults, StackSettings, values, PREFIX)
        # Relations between parts can only be validated if there are parts.
        if all(fault["loc"] for fault in faults):
            found += _between_valid_parts(values, found)
        raise StackFileError(_advised([*secrets, *_others(found, hidden)])) from error
    if found := [*secrets, *_others(of_problems(problems_of(settings, group), values, PREFIX), hidden)]:
        raise StackFileError(_advised(found))
    return settings


_OUTSIDE = {f"{PREFIX}{key}" for key in ("cml", "externalClusters", "jobs")}
"""Keys of what runs outside Kubernetes."""


def _advised(found: list[Finding]) -> Iterator[Finding]:
    """The findings, which advise a Secret of Kubernetes only for what runs there."""
    for each in found:
        outside = each.path[:1] and each.path[0] in _OUTSIDE
        yield replace(each, message=each.message.replace(ADVICE, ADVICE_OUTSIDE)) if outside else each


def _others(found: list[Finding], hidden: list[Place]) -> list[Finding]:
    """The findings that are not about a secret: those about one could show it."""
    return [each for each in found if not any(each.path[: len(path)] == path for path in hidden)] if hidden else found


def load(path: Path) -> StackSettings:
    """The settings in a stack file such as Pulumi.dev.yaml; keys of other programs are skipped.

    Raises StackFileError if the file cannot be read, is not a stack file, or has invalid settings.
    """
    return settings_of(stack_file(path, read(path)))


def plain_values(path: Path) -> dict[str, Any]:
    """All values of a stack file with those of the files that it names, with plain numbers. Raises StackFileError.

    Write a copy of them by `as_yaml`.
    """
    file = with_launcher_files(stack_file(path, read(path)))
    values: dict[str, Any] = json.loads(json.dumps(file.document.value))
    # A copy may be in another folder than the bases.
    (values.get("config") or {}).pop(f"{PREFIX}{EXTENDS}", None)
    return values


def settings_of(file: StackFile, group: int | None = None) -> StackSettings:
    """The settings of a stack file; `group` as in `parse`. Raises StackFileError."""
    file = with_launcher_files(file)
    found = [finding for key in file.config for finding in _misspelt(key)]
    try:
        settings = parse(file.values(PREFIX), group)
    except StackFileError as error:
        raise file.error([*found, *error.findings]) from error
    if found:
        raise file.error(found)
    return settings


def _validated(values: Mapping[str, Any]) -> StackSettings:
    return StackSettings.model_validate(dict(values), by_alias=True, by_name=False)


def _between_valid_parts(values: Mapping[str, Any], found: list[Finding]) -> list[Finding]:
    """Problems between the parts that are valid by themselves."""
    subset = valid_subset(values, [finding.path for finding in found])
    if subset is None:
        return []
    try:
        more = of_problems(problems_of(_validated(subset.values)), subset.values, PREFIX)
    except ValidationError as error:
        more = findings(error.errors(include_url=False), StackSettings, subset.values, PREFIX)
    return [replace(each, path=subset.original(each.path)) for each in more]


def encrypted(path: Place) -> Finding:
    """The finding for a value of the stack file that Pulumi has encrypted."""
    secret = ADVICE_OUTSIDE if path[0] in _OUTSIDE else "put secrets into a Kubernetes Secret, and name the Secret here"
    message = f"is encrypted, but must be plain text: {secret}"
    return Finding(path, None, message, "encrypted-value")


def _inside(values: Mapping[str, Any]) -> Iterator[tuple[Place, Any]]:
    for key, value in values.items():
        yield from inside(value, (f"{PREFIX}{key}",))


def _is_encrypted(value: Any) -> bool:
    """Whether Pulumi has encrypted it (`pulumi config set --secret`)."""
    return isinstance(value, Mapping) and list(value) == ["secure"] and isinstance(value["secure"], str)


def _kind_of_secret(path: Place, value: Any) -> str | None:
    """What a text contains, if that is a secret which is known by its look, or in a command by its name; also of a
    command whose flag and value are two words."""
    if isinstance(value, list) and path[-1] in ("args", "command"):
        words = [each for each in value if isinstance(each, str) and not (secret_in(each) or secrets_of_command(each))]
        found = secrets_of_command(" ".join(words))
        return f"what looks like a secret, {found[0]!r}" if found else None
    if not isinstance(value, str) or len(value) <= _SHORTEST_SECRET:
        return None
    by_name = secrets_of_command(value) if {"entrypoint", "args", "command"} & set(path[-2:]) else []
    if _NAMED & set(path[:-1]) and isinstance(path[-1], str) and _DIGIT.search(value):
        by_name += [path[-1]] if is_secret_by_name(path[-1], value) else []
    return secret_in(value) or (f"what looks like a secret, {by_name[0]!r}" if by_name else None)


def _misspelt(key: str) -> Iterator[Finding]:
    """Findings for a key of `config` that no program uses, or that differs from a key of this program by a letter or
    two."""
    namespace, colon, name = key.partition(":")
    if not colon:
        message = f"key {shown(key)} has no namespace: write {shown(PREFIX + key)}"
    elif namespace != PROJECT and difflib.get_close_matches(namespace, [PROJECT], cutoff=0.8):
        message = f"no program has keys under {shown(namespace)}: did you mean {shown(PREFIX + name)}?"
    else:
        return
    yield Finding((key,), None, message, UNKNOWN_FIELD)


TENANTS = f"{PREFIX}tenants"


@dataclass(frozen=True)
class ValidSubset:
    """Values without invalid tenants and clusters."""

    values: dict[str, Any]
    tenants: list[int]
    """The index of each tenant in the file."""
    clusters: list[list[int]]
    """The indexes in the file of each tenant's clusters."""

    def original(self, path: Place) -> Place:
        """The path in the file of a path in the subset."""
        match path:
            case (key, int(tenant), "clusters", int(cluster), *rest):
                return (key, self.tenants[tenant], "clusters", self.clusters[tenant][cluster], *rest)
            case (key, int(tenant), *rest):
                return (key, self.tenants[tenant], *rest) if key == TENANTS else path
        return path


def valid_subset(values: Mapping[str, Any], faults: Iterable[Place]) -> ValidSubset | None:
    """The values without invalid tenants and clusters; None if an error is elsewhere, because then all parts depend on
    it."""
    faulty: set[Place] = set()
    for path in faults:
        match path:
            case (key, int(tenant), "clusters", int(cluster), *_) if key == TENANTS:
                faulty.add((tenant, cluster))
            case (key, int(tenant), *_) if key == TENANTS:
                faulty.add((tenant,))
            case _:
                return None
    kept, tenants, clusters = [], [], []
    for index, tenant in enumerate(values["tenants"]):
        if (index,) not in faulty:
            valid = [at for at in range(len(tenant.get("clusters", ()))) if (index, at) not in faulty]
            whole = len(valid) == len(tenant.get("clusters", ()))
            # Users name clusters: an invalid cluster that is removed here counts as existing.
            rest = tenant if whole else {key: value for key, value in tenant.items() if key != "users"}
            kept.append({**rest, "clusters": [tenant["clusters"][at] for at in valid]})
            tenants.append(index)
            clusters.append(valid)
    return ValidSubset({**values, "tenants": kept}, tenants, clusters)
