"""The inputs after a refresh."""

from typing import Any

import pytest

from local.plugins.kubernetes.diff import adopted, reconciled

pytestmark = pytest.mark.unit


def obj(kind: str = "ConfigMap", **body: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, **body}


def test_a_value_that_the_server_normalizes_stays_as_in_the_program() -> None:
    inputs, stored = obj(spec={"cpu": "1000m"}), obj(spec={"cpu": "1", "added": "default"})
    assert reconciled(inputs, stored, stored) == inputs


def test_a_value_that_another_manager_changed_becomes_the_live_one() -> None:
    inputs, stored = obj(data={"a": "1", "b": "2"}), obj(data={"a": "1", "b": "2"})
    assert reconciled(inputs, stored, obj(data={"a": "9"})) == obj(data={"a": "9"})


def test_without_an_answer_of_the_server_amounts_are_compared() -> None:
    inputs = obj(spec={"limits": {"cpu": "1000m", "memory": "1Gi"}})
    live = obj(spec={"limits": {"cpu": "1", "memory": "2Gi"}})
    assert reconciled(inputs, None, live) == obj(spec={"limits": {"cpu": "1000m", "memory": "2Gi"}})


def test_items_of_other_managers_in_a_merged_list_are_not_drift() -> None:
    merged = obj(spec={"containers": [{"name": "web"}, {"name": "sidecar"}]})
    inputs = obj(spec={"containers": [{"name": "web"}]})
    assert reconciled(inputs, merged, merged) == inputs


def test_an_item_that_is_missing_is_drift() -> None:
    inputs = obj(spec={"items": [{"a": 1}, {"b": 2}]})
    assert reconciled(inputs, inputs, obj(spec={"items": [{"a": 1}]})) == obj(spec={"items": [{"a": 1}]})


def test_an_imported_object_has_no_fields_that_only_the_server_writes() -> None:
    metadata = {"name": "a", "uid": "1", "managedFields": [], "labels": {"x": "y"}}
    assert adopted(obj(metadata=metadata, status={"phase": "x"}, data={"a": "1"})) == obj(
        metadata={"name": "a", "labels": {"x": "y"}}, data={"a": "1"}
    )


def test_an_imported_custom_resource_has_only_its_identity() -> None:
    """Pulumi's plugin has no schema of custom kinds to recognize inputs; the update after an import sets all."""
    live = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "a", "namespace": "n", "labels": {"x": "y"}},
        "spec": {"rayVersion": "2.60.0"},
    }
    assert adopted(live) == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "a", "namespace": "n"},
    }
