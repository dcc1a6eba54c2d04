"""What counts as a difference, and what a difference replaces."""

from typing import Any

import pytest

from local.plugins.kubernetes.diff import changes, contains, parse_property_path, property_path
from local.plugins.kubernetes.replaced_fields import replaced_fields
from local.plugins.kubernetes.values import UNKNOWN

pytestmark = pytest.mark.unit


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
