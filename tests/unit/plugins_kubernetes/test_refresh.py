"""What a refresh makes of the inputs."""

import base64
from typing import Any

import pytest

from local.plugins.kubernetes.refresh import adopted, reconciled

pytestmark = pytest.mark.unit


def obj(kind: str = "ConfigMap", **body: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, **body}


def test_what_the_server_writes_in_another_way_stays_as_the_program_wrote_it() -> None:
    said, stored = obj(spec={"cpu": "1000m"}), obj(spec={"cpu": "1", "added": "default"})
    assert reconciled(said, stored, stored) == said


def test_what_somebody_changed_is_taken_from_the_live_object() -> None:
    said, stored = obj(data={"a": "1", "b": "2"}), obj(data={"a": "1", "b": "2"})
    assert reconciled(said, stored, obj(data={"a": "9"})) == obj(data={"a": "9"})


def test_without_an_answer_of_the_server_the_amount_counts() -> None:
    said = obj(spec={"limits": {"cpu": "1000m", "memory": "1Gi"}})
    live = obj(spec={"limits": {"cpu": "1", "memory": "2Gi"}})
    assert reconciled(said, None, live) == obj(spec={"limits": {"cpu": "1000m", "memory": "2Gi"}})


def test_items_that_others_added_to_a_merged_list_are_no_drift() -> None:
    merged = obj(spec={"containers": [{"name": "web"}, {"name": "sidecar"}]})
    said = obj(spec={"containers": [{"name": "web"}]})
    assert reconciled(said, merged, merged) == said


def test_an_item_that_is_missing_is_drift() -> None:
    said = obj(spec={"items": [{"a": 1}, {"b": 2}]})
    assert reconciled(said, said, obj(spec={"items": [{"a": 1}]})) == obj(spec={"items": [{"a": 1}]})


def test_a_secrets_text_is_compared_with_the_data_that_is_stored() -> None:
    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    said = obj("Secret", stringData={"kept": "a", "changed": "b", "removed": "c"})
    live = obj("Secret", data={"kept": encoded("a"), "changed": encoded("z")})
    expected = obj("Secret", data={key: encoded(value) for key, value in said["stringData"].items()})
    assert reconciled(said, expected, live) == obj("Secret", stringData={"kept": "a", "changed": "z"})


def test_an_imported_object_is_taken_without_what_only_the_server_writes() -> None:
    metadata = {"name": "a", "uid": "1", "managedFields": [], "labels": {"x": "y"}}
    assert adopted(obj(metadata=metadata, status={"phase": "x"}, data={"a": "1"})) == obj(
        metadata={"name": "a", "labels": {"x": "y"}}, data={"a": "1"}
    )


def test_of_an_imported_custom_resource_only_its_name_is_taken() -> None:
    """Pulumi's plugin has no schema of custom kinds to tell inputs by; the update that follows an import says all."""
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
