"""What counts as a difference, what a difference replaces, and the inputs after a refresh."""

from typing import Any

import pytest

from local.plugins.kubernetes.diff import (
    adopted,
    changes,
    contains,
    is_quantity_field,
    parse_property_path,
    property_path,
    reconciled,
    same_amount,
)
from local.plugins.kubernetes.replaced_fields import replaced_fields
from local.plugins.kubernetes.values import UNKNOWN


def paths(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    return {property_path(change.path): change.how for change in changes(old, new)}


def deployment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_each_difference_has_its_path() -> None:
    old = deployment(replicas=1, paused=True, items=[{"a": 1}])
    new = deployment(replicas=2, items=[{"a": 1}, {"b": 2}])
    assert paths(old, new) == {"spec.replicas": "update", "spec.paused": "delete", "spec.items[1]": "add"}


def test_true_is_not_a_number() -> None:
    assert paths(deployment(a=1), deployment(a=True)) == {"spec.a": "update"}
    assert paths(deployment(a=1), deployment(a=1.0)) == {}


def test_an_unknown_value_counts_as_a_change() -> None:
    assert paths(deployment(replicas=1), deployment(replicas=UNKNOWN)) == {"spec.replicas": "update"}


def test_an_empty_selector_is_a_change() -> None:
    assert paths(deployment(), deployment(podSelector={})) == {"spec.podSelector": "add"}


def test_the_same_amount_is_not_a_change_of_kubernetes_own_kinds() -> None:
    def limited(cpu: str) -> dict[str, Any]:
        return deployment(resources={"limits": {"cpu": cpu}})

    assert paths(limited("1000m"), limited("1")) == {}
    assert paths(limited("1000m"), limited("2")) == {"spec.resources.limits.cpu": "update"}
    custom = [body | {"apiVersion": "ray.io/v1", "kind": "RayCluster"} for body in (limited("1000m"), limited("1"))]
    assert paths(*custom) == {"spec.resources.limits.cpu": "update"}


@pytest.mark.parametrize(
    "path", ["spec.containers[0].env", 'metadata.labels["app.kubernetes.io/name"]', 'data["a\\"b"].c', "metadata"]
)
def test_a_written_path_is_parsed_again(path: str) -> None:
    assert property_path(parse_property_path(path)) == path


def test_an_ignored_path_covers_what_is_below_it() -> None:
    assert contains(parse_property_path("spec.template"), parse_property_path("spec.template.spec.x"))
    assert contains(parse_property_path("spec.items[*].a"), parse_property_path("spec.items[3].a.b"))
    assert not contains(parse_property_path("spec.template"), parse_property_path("spec"))


def replaces(old: dict[str, Any], new: dict[str, Any], **mutable: bool) -> bool:
    settings = {"config_map_mutable": False, "secret_mutable": False} | mutable
    return any(change.replaces(replaced_fields(new, **settings)) for change in changes(old, new))


def test_a_changed_selector_replaces_a_deployment_but_a_changed_image_does_not() -> None:
    old = deployment(selector={"matchLabels": {"app": "a"}}, image="1")
    assert replaces(old, deployment(selector={"matchLabels": {"app": "b"}}, image="1"))
    assert not replaces(old, deployment(selector={"matchLabels": {"app": "a"}}, image="2"))


def test_a_change_above_a_field_replaces_too() -> None:
    bare = deployment()
    del bare["spec"]
    assert replaces(bare, deployment(selector={"matchLabels": {"app": "a"}}))
    assert not replaces(bare, deployment(replicas=1))


def test_a_changed_image_of_any_container_replaces_a_pod() -> None:
    def pod(*images: str) -> dict[str, Any]:
        spec = {"containers": [{"name": image[0], "image": image} for image in images]}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    assert replaces(pod("a:1", "b:1"), pod("a:1", "b:2"))


def test_changed_data_replaces_a_config_map_unless_the_provider_treats_it_as_mutable() -> None:
    def config_map(value: str, **more: Any) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": value}, **more}

    assert replaces(config_map("1"), config_map("2"))
    assert not replaces(config_map("1"), config_map("2"), config_map_mutable=True)
    assert replaces(config_map("1", immutable=True), config_map("2", immutable=True), config_map_mutable=True)


@pytest.mark.parametrize("kind", ["Namespace", "CustomResourceDefinition", "RayCluster"])
def test_only_another_identity_replaces_a_kind_without_immutable_fields(kind: str) -> None:
    def body(name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}

    assert not replaces(body("a", anything=1), body("a", anything=2))
    assert replaces(body("a"), body("b"))


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


@pytest.mark.parametrize(
    ("one", "other"), [("1000m", "1"), ("1024Mi", "1Gi"), ("1", 1), ("1e3", "1k"), ("0.5", "500m"), ("1E", "1e18")]
)
def test_the_same_amount(one: object, other: object) -> None:
    assert same_amount(one, other)


@pytest.mark.parametrize(("one", "other"), [("1G", "1Gi"), ("1", "2"), ("x", "x"), (True, 1)])
def test_not_the_same_amount(one: object, other: object) -> None:
    assert not same_amount(one, other)


@pytest.mark.parametrize("text", ["", "1 Gi", "1gi", "Gi", "one", "1e", None, {}])
def test_other_texts_are_not_quantities(text: object) -> None:
    assert not same_amount(text, text)


def test_fields_with_quantities() -> None:
    assert is_quantity_field(("spec", "hard", "requests.cpu"))
    assert is_quantity_field(("emptyDir", "sizeLimit"))
    assert not is_quantity_field(("data", "cpu"))
