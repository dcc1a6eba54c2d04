"""Every value of the input is in the result, or in a note: shown by changing each value, and by random input."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.commands.importing.file import clusters_in
from stacks.commands.importing.reader import Answers, RefusedError, leaves
from tests.unit.importing.test_manifests import FULL, PLAIN, job
from tests.unit.importing.test_other_formats import FIRST_OPERATOR, WITH_FIELDS

pytestmark = pytest.mark.thorough

DOCUMENTS: dict[str, Any] = {
    **{file.stem: yaml.safe_load(file.read_text()) for file in (Path(__file__).parent / "launcher_files").glob("*")},
    "first operator": yaml.safe_load(FIRST_OPERATOR),
    "proposal": yaml.safe_load(WITH_FIELDS),
    "manifest": PLAIN,
    "full manifest": FULL,
    "job": job("RayJob", "rayClusterSpec", entrypoint="python train.py", shutdownAfterJobFinishes=True),
    "service": job("RayService", "rayClusterConfig", serveConfigV2="applications: []"),
}

WITHOUT_EFFECT = {
    ("provider", "type"): "machines of all providers are the Kubernetes cluster's",
    ("available_node_types", "head_node", "node_config", "apiVersion"): "a pod is a pod",
    ("available_node_types", "head_node", "node_config", "kind"): "a pod is a pod",
    ("autoscaling_mode",): "default is what it is without",
    ("apiVersion",): "the version of the same object",
}
"""Leaves that nothing depends on, and why."""


def changed(value: Any, path: tuple[str | int, ...]) -> Iterator[Any]:
    """Copies of `value` with another leaf at `path`."""
    leaf = value
    for step in path:
        leaf = leaf[step]
    numbers = isinstance(leaf, int | float) and not isinstance(leaf, bool)
    for other in [leaf + 1, max(0, leaf - 1)] if numbers else [not leaf] if isinstance(leaf, bool) else [f"{leaf}9"]:
        yield with_value(value, path, other)


def with_value(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    copy = deepcopy(value)
    parent = copy
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = other
    return copy


def result(document: Any) -> Any:
    try:
        found, others = clusters_in(document, Answers())
    except RefusedError as refused:
        return str(refused)
    notes = [str(note) for each in found for note in each.notes]
    return [(each.entry, each.namespace) for each in found], notes, [str(note) for note in others]


def cases() -> list[Any]:
    return [
        pytest.param(name, path, id=f"{name}:{'.'.join(map(str, path))}")
        for name, document in DOCUMENTS.items()
        for path in leaves(document)
    ]


@pytest.mark.parametrize(("name", "path"), cases())
def test_every_leaf_is_listed_or_changes_the_result(name: str, path: tuple[str | int, ...]) -> None:
    """Changing a value that no note covers must change the result."""
    document = DOCUMENTS[name]
    [imported], _ = clusters_in(document, Answers())
    if any(note.path == path[: len(note.path)] and note.at is None for note in imported.notes):
        return
    before = result(document)
    assert path in WITHOUT_EFFECT or any(result(each) != before for each in changed(document, path))


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(each, (*path, key))


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", "$X", -1, 0, 10**12, 1.5, True, [], {}, [None], [1], {"a": None}, "a: [", {"b": [{}]}]
)


@given(st.data())
@settings(derandomize=True, max_examples=600)
def test_wild_input_is_imported_or_refused(data: st.DataObject) -> None:
    document = DOCUMENTS[data.draw(st.sampled_from(sorted(DOCUMENTS)))]
    for _ in range(data.draw(st.integers(1, 3))):
        found = list(places(document))
        document = with_value(document, data.draw(st.sampled_from(found)), data.draw(ODD))
    result(document)
