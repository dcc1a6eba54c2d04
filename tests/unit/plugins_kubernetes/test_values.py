"""Values on the wire and in Python."""

import pytest

from local.plugins.kubernetes.values import (
    UNKNOWN,
    Secret,
    decode,
    encode,
    has_unknown,
    mark_like,
    plain,
    without_nulls,
)


def test_encoded_values_are_decoded_again() -> None:
    values = {"text": "a", "whole": 3, "half": 0.5, "yes": True, "none": None, "list": [1, {"a": Secret("x")}, {}, []]}
    assert decode(encode(values)) == values
    assert decode(encode({"later": UNKNOWN}))["later"] is UNKNOWN


def test_whole_numbers_stay_integers_because_kubernetes_refuses_floats() -> None:
    replicas = decode(encode({"replicas": 3.0}))["replicas"]
    assert isinstance(replicas, int)


def test_secrets_and_nulls_do_not_reach_the_api_server() -> None:
    assert plain({"a": Secret({"b": "x", "c": None}), "d": None, "e": Secret(None)}) == {"a": {"b": "x"}}
    assert without_nulls({"a": Secret({"b": "x", "c": None})}) == {"a": Secret({"b": "x"})}


def test_an_unknown_is_found_at_any_depth() -> None:
    assert has_unknown({"a": [Secret({"b": UNKNOWN})]})
    assert not has_unknown({"a": [Secret({"b": "known"})]})


def test_a_secret_does_not_show_in_a_traceback() -> None:
    assert "tulip" not in repr({"password": Secret("tulip-42")})


@pytest.mark.parametrize(
    ("value", "like", "marked"),
    [
        ({"a": "x", "b": "y"}, {"a": Secret("old")}, {"a": Secret("x"), "b": "y"}),
        ([1, 2], [Secret(0), 0], [Secret(1), 2]),
        ([1, 2, 3], [Secret(0), 0], Secret([1, 2, 3])),
        ({"a": {"b": "x"}}, {"a": Secret({"b": "old"})}, {"a": Secret({"b": "x"})}),
    ],
)
def test_outputs_are_secret_where_the_inputs_are(value: object, like: object, marked: object) -> None:
    assert mark_like(value, like) == marked
