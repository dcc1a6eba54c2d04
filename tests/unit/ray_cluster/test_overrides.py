"""How a user's own words are merged into what was derived."""

from typing import Any

import pytest

from components.ray_cluster.overrides import merge

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 9}}, {"a": 1, "b": {"c": 9, "d": 3}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": 1}, {"b": {"c": None, "d": 1}}, {"a": 1, "b": {"d": 1}}),
        ([1, 2], [3], [3]),
        ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
        (
            [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}],
            [{"name": "y", "value": "3"}, {"name": "z", "value": "4"}],
            [{"name": "x", "value": "1"}, {"name": "y", "value": "3"}, {"name": "z", "value": "4"}],
        ),
        ([{"groupName": "g", "n": 1}], [{"groupName": "g", "m": 2}], [{"groupName": "g", "n": 1, "m": 2}]),
        ([{"key": "x"}], [{"key": "y"}], [{"key": "y"}]),
    ],
)
def test_mappings_merge_null_takes_away_and_named_items_find_each_other(base: Any, over: Any, merged: Any) -> None:
    assert merge(base, over) == merged


def test_neither_side_is_changed() -> None:
    base, over = {"a": [{"name": "x", "v": {"w": 1}}]}, {"a": [{"name": "x", "v": {"w": 2}}]}
    merge(base, over)
    assert (base, over) == ({"a": [{"name": "x", "v": {"w": 1}}]}, {"a": [{"name": "x", "v": {"w": 2}}]})
