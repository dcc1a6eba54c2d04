"""Overrides of a user are merged into derived bodies, and are computed from desired bodies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.strategic_merge import MERGE_KEYS, difference, merge

PAIR = [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]


@pytest.mark.parametrize(
    ("base", "over", "merged"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 9}}, {"a": 1, "b": {"c": 9, "d": 3}}),
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": 1}, {"b": {"c": None, "d": 1}}, {"a": 1, "b": {"d": 1}}),
        ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
        ({"args": [1, 2]}, {"args": [3]}, {"args": [3]}),
        ({"tolerations": [{"key": "x"}]}, {"tolerations": [{"key": "y"}]}, {"tolerations": [{"key": "y"}]}),
        ({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 2}}, {"a": {"c": 2}}),
        ({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}),
    ],
)
def test_mappings_merge_null_removes_and_other_values_replace(base: Any, over: Any, merged: Any) -> None:
    assert merge(base, over) == merged


@pytest.mark.parametrize(
    ("over", "merged"),
    [
        (
            [{"name": "y", "value": "3"}, {"name": "z", "value": "4"}],
            [{"name": "x", "value": "1"}, {"name": "y", "value": "3"}, {"name": "z", "value": "4"}],
        ),
        ([{"name": "x", "$patch": "delete"}], [{"name": "y", "value": "2"}]),
        ([{"name": "none", "$patch": "delete"}], PAIR),
        ([{"$patch": "replace"}, {"name": "z", "value": "4"}], [{"name": "z", "value": "4"}]),
        ([{"$patch": "replace"}], []),
        ([], PAIR),
        (
            [{"name": "x", "value": None, "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            [{"name": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, PAIR[1]],
        ),
    ],
)
def test_items_of_env_merge_by_name(over: Any, merged: Any) -> None:
    assert merge({"env": PAIR}, {"env": over}) == {"env": merged}


@pytest.mark.parametrize(
    ("name", "base", "over", "items"),
    [
        ("workerGroupSpecs", {"groupName": "g", "n": 1}, {"groupName": "g", "n": 2}, 1),
        ("workerGroupSpecs", {"groupName": "g"}, {"groupName": "h"}, 2),
        ("volumeMounts", {"mountPath": "/a", "name": "v"}, {"mountPath": "/a", "name": "w"}, 1),
        ("volumeMounts", {"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "v"}, 2),
        ("ports", {"containerPort": 53}, {"containerPort": 53, "protocol": "TCP"}, 1),
        ("ports", {"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}, 2),
        ("ports", {"port": 80, "name": "a"}, {"port": 80, "name": "b"}, 1),
        ("hostAliases", {"ip": "::1", "hostnames": ["a"]}, {"ip": "::1", "hostnames": ["b"]}, 1),
        ("topologySpreadConstraints", {"topologyKey": "z", "maxSkew": 1}, {"topologyKey": "z", "maxSkew": 2}, 1),
    ],
)
def test_each_list_merges_by_the_key_that_kubernetes_gives_it(name: str, base: Any, over: Any, items: int) -> None:
    assert merge({name: [base]}, {name: [over]}) == {name: [{**base, **over}] if items == 1 else [base, over]}


def test_neither_side_is_changed() -> None:
    base, over = {"env": [{"name": "x", "v": {"w": 1}}]}, {"env": [{"name": "x", "v": {"w": 2}}]}
    merge(base, over)
    assert (base, over) == ({"env": [{"name": "x", "v": {"w": 1}}]}, {"env": [{"name": "x", "v": {"w": 2}}]})


def test_a_difference_has_only_what_differs() -> None:
    base = {"spec": {"containers": [{"name": "a", "image": "i:1", "env": PAIR}], "restartPolicy": "Never"}}
    desired = {"spec": {"containers": [{"name": "a", "image": "i:2", "env": PAIR[:1]}, {"name": "b"}]}}
    assert difference(base, desired) == {
        "spec": {
            "restartPolicy": None,
            "containers": [
                {"name": "a", "image": "i:2", "env": [{"name": "y", "$patch": "delete"}]},
                {"name": "b"},
            ],
        }
    }
    assert difference(base, base) == {}


@pytest.mark.parametrize("desired", [PAIR[::-1], [PAIR[0], PAIR[0]], [{"value": "1"}], [{"name": "other"}]])
def test_a_list_in_another_order_or_with_equal_items_is_replaced(desired: Any) -> None:
    assert difference({"env": PAIR}, {"env": desired}) == {"env": [{"$patch": "replace"}, *desired]}


SCALARS = st.sampled_from(["", "a", "b", 0, 1, True, 2.5])


def bodies(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mappings and lists as bodies have them: few keys, so that both sides have the same ones."""
    items = st.fixed_dictionaries({"name": st.sampled_from("xyz")}, optional={"value": values, "env": values})
    ports = st.fixed_dictionaries(
        {"containerPort": st.sampled_from([1, 2])}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}
    )
    keys = st.sampled_from(["a", "b", "name", "tolerations"])
    mappings = st.dictionaries(keys, values, max_size=3)
    lists = st.dictionaries(st.sampled_from(["env", "containers"]), st.lists(items, max_size=4), max_size=2)
    port_lists = st.dictionaries(st.just("ports"), st.lists(ports, max_size=3), max_size=1)
    anything = st.dictionaries(st.sampled_from(sorted(MERGE_KEYS)), values, max_size=2)
    whole = st.tuples(mappings, lists, port_lists, anything).map(
        lambda parts: {k: v for part in parts for k, v in part.items()}
    )
    return st.one_of(whole, st.lists(values, max_size=3))


BODIES = st.recursive(SCALARS, bodies, max_leaves=12)


@given(BODIES, BODIES)
def test_the_difference_merged_into_the_base_is_the_desired_body(base: Any, desired: Any) -> None:
    assert merge({"spec": base}, difference({"spec": base}, {"spec": desired})) == {"spec": desired}


@given(BODIES)
def test_an_empty_override_changes_nothing(base: Any) -> None:
    assert merge({"spec": base}, {}) == {"spec": base}
    assert difference({"spec": base}, {"spec": base}) == {}


def test_a_null_in_the_desired_body_counts_as_missing() -> None:
    desired = {"nodeSelector": None, "tolerations": [{"key": "a", "value": None}]}
    assert merge({"a": 1}, difference({"a": 1}, desired)) == {"tolerations": [{"key": "a"}]}
