"""Managers of fields: whose fields an apply takes over, and which it leaves alone."""

from typing import Any

from local.plugins.kubernetes.fields import created_by_us, leave_ignored, take_over

OURS = "pulumi-kubernetes-0a1b2c3d"


def live(*entries: dict[str, Any], **body: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "resourceVersion": "7", "managedFields": list(entries)}, **body}


def entry(manager: str, operation: str, fields: dict[str, Any] | None = None, subresource: str = "") -> dict[str, Any]:
    named = {"manager": manager, "operation": operation, "fieldsV1": fields or {}}
    return named | ({"subresource": subresource} if subresource else {})


def test_the_first_apply_takes_over_what_the_create_and_kubectl_own() -> None:
    obj = live(
        entry("pulumi-kubernetes", "Update", {"f:data": {"f:a": {}}}),
        entry("kubectl-edit", "Update", {"f:data": {"f:b": {}}}),
        entry("kubectl", "Update", {"f:spec": {}}, "scale"),
        entry("their-controller", "Update", {"f:status": {}}),
    )
    replaced, version = take_over(obj, OURS)
    merged, *kept = replaced["value"]
    assert merged == entry(OURS, "Apply", {"f:data": {"f:a": {}, "f:b": {}}})
    assert [item["manager"] for item in kept] == ["kubectl", "their-controller"]
    assert version["value"] == "7"
    assert created_by_us(obj)


def test_fields_of_a_controller_are_not_taken_over() -> None:
    obj = live(entry(OURS, "Apply"), entry("their-controller", "Update"))
    assert take_over(obj, OURS) == []
    assert not created_by_us(obj)


def test_an_ignored_field_of_another_manager_is_removed() -> None:
    obj = live(entry("autoscaler", "Update", {"f:spec": {"f:replicas": {}}}), spec={"replicas": 5})
    inputs = {"spec": {"replicas": 1, "paused": True}}
    assert leave_ignored(inputs, obj, OURS, ["spec.replicas"]) == {"spec": {"paused": True}}


def test_an_ignored_field_of_this_manager_keeps_its_live_value() -> None:
    obj = live(entry(OURS, "Apply", {"f:spec": {"f:replicas": {}}}), spec={"replicas": 5})
    assert leave_ignored({"spec": {"replicas": 1}}, obj, OURS, ["spec.replicas"]) == {"spec": {"replicas": 5}}


def test_an_ignored_field_within_a_list_keeps_the_value_of_the_engine() -> None:
    inputs = {"spec": {"groups": [{"replicas": 1}]}}
    assert leave_ignored(inputs, live(spec={"groups": []}), OURS, ["spec.groups[0].replicas"]) == inputs
