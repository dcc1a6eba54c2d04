"""The tables of tests/stack_files/bad: good settings, what a case changes of them, and what `check` finds then."""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.stack_file import PROJECT

STEP = re.compile(r'"([^"]+)"|\[(\d+)\]|([^.\[\]"]+)')
"""A step of a path such as tenants[0].labels."a.b/c"."""


@dataclass(frozen=True)
class Case:
    """A stack file, by its table and name, and the beginnings of its findings; none for the settings of a table."""

    name: str
    text: str
    finds: tuple[str, ...] = ()


def cases(table: Path) -> Iterator[Case]:
    """The good settings of a table, each with its cases."""
    for base, group in yaml.safe_load(table.read_text()).items():
        yield Case(f"{table.stem}/{base}", text_of(group["base"]))
        for name, case in group["cases"].items():
            finds = case["finds"]
            yield Case(
                f"{table.stem}/{name}",
                text_of(changed(group["base"], case)),
                tuple(finds) if isinstance(finds, list) else (finds,),
            )


def text_of(settings: dict[str, Any]) -> str:
    config = {key if ":" in key else f"{PROJECT}:{key}": value for key, value in settings.items()}
    return yaml.safe_dump({"config": config}, sort_keys=False, allow_unicode=True, width=10_000)


def changed(base: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The settings with what a case sets, and without what it removes."""
    made = copy.deepcopy(base)
    for path, value in case.get("set", {}).items():
        parent, last = _parent(made, path)
        if isinstance(parent, list) and last == len(parent):
            parent.append(value)
        else:
            parent[last] = value
    for path in case.get("remove", ()):
        parent, last = _parent(made, path)
        del parent[last]
    return made


def _parent(settings: Any, path: str) -> tuple[Any, Any]:
    *above, last = [int(at) if at else quoted or key for quoted, at, key in STEP.findall(path)]
    for step in above:
        settings = settings[step]
    return settings, last


def places(text: str, path: tuple[str | int, ...]) -> set[tuple[int, int]]:
    """Line and column of the value at a path, and of its key; those of the value around it where there is none."""
    key, value = None, yaml.compose(text)
    for step in ("config", *path):
        if isinstance(value, yaml.MappingNode):
            found = next(((each, below) for each, below in value.value if each.value == str(step)), None)
        else:
            found = next(((None, below) for at, below in enumerate(value.value) if at == step), None) if value else None
        if found is None:
            break
        key, value = found
    return {(each.start_mark.line + 1, each.start_mark.column + 1) for each in (key, value) if each}
