"""Which of Ray's pods go first, and who decides it."""

import pytest

from components.priority_classes.settings import NO_PRIORITIES, PriorityClassesSettings, PriorityNames, priority_classes


def test_heads_have_a_higher_priority_than_pods_without_a_class_and_workers_the_same() -> None:
    head, worker = priority_classes(PriorityClassesSettings().beside("manifests"))
    assert (head["metadata"]["name"], worker["metadata"]["name"]) == ("ray-head", "ray-worker")
    assert head["value"] > worker["value"] == 0
    assert not any("globalDefault" in body for body in (head, worker))


def test_the_stack_creates_them_with_the_configured_names() -> None:
    settings = PriorityClassesSettings(head="lab-head", worker="lab-worker").beside("manifests")
    assert [each["metadata"]["name"] for each in priority_classes(settings)] == ["lab-head", "lab-worker"]
    assert settings.names == PriorityNames("lab-head", "lab-worker")


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (PriorityClassesSettings(install="existing", head="first"), PriorityNames("first", "ray-worker")),
        (PriorityClassesSettings(install="none"), NO_PRIORITIES),
    ],
    ids=["existing", "none"],
)
def test_nothing_is_created_if_they_exist_or_pods_get_none(
    settings: PriorityClassesSettings, names: PriorityNames
) -> None:
    assert priority_classes(settings) == []
    assert settings.names == names


def test_with_an_existing_operator_nothing_is_created_by_default() -> None:
    assert PriorityClassesSettings().beside("existing").names == NO_PRIORITIES
    assert PriorityClassesSettings(head="first").beside("existing").install == "existing"
    assert PriorityClassesSettings(install="manifests").beside("existing").install == "manifests"


@pytest.mark.parametrize(
    ("settings", "classes"),
    [
        (PriorityClassesSettings().beside("manifests"), ("ray-head", "ray-worker")),
        (PriorityClassesSettings(allowed=("urgent",)).beside("manifests"), ("ray-head", "ray-worker", "urgent")),
        (PriorityClassesSettings(allowed=("urgent",)).beside("existing"), ("urgent",)),
    ],
)
def test_tenants_may_have_the_classes_of_the_stack_and_those_that_it_allows(
    settings: PriorityClassesSettings, classes: tuple[str, ...]
) -> None:
    assert settings.of_tenants == classes
