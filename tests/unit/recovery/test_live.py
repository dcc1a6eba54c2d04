"""Which objects belong to the stack."""

from typing import Any

import pytest

from stacks.commands.recover.deployment import Candidate
from stacks.commands.recover.repair import is_own

pytestmark = pytest.mark.unit

OURS = "pulumi-ray-platform-dev"


def candidate(manager: str = OURS) -> Candidate:
    return Candidate({"urn": "one"}, "v1", "ConfigMap", "team-a", "one", manager)


def live(marked: str | None, *managers: str) -> dict[str, Any]:
    annotations = {"pulumi.com/patchFieldManager": marked} if marked else {}
    return {"metadata": {"annotations": annotations, "managedFields": [{"manager": each} for each in managers]}}


@pytest.mark.parametrize("managers", [["pulumi-kubernetes"], [OURS], ["kube-controller-manager", OURS]])
def test_an_object_that_this_stack_created_is_its_own(managers: list[str]) -> None:
    assert is_own(candidate(), live(OURS, *managers))


@pytest.mark.parametrize(
    ("marked", "managers"),
    [
        (None, ["kubectl-client-side-apply"]),
        (None, ["pulumi-kubernetes"]),
        ("pulumi-ray-platform-prod", ["pulumi-kubernetes"]),
        (OURS, ["kubectl-create"]),
    ],
    ids=["kubectl's", "another project's", "another stack's", "a copy that kubectl made"],
)
def test_an_object_that_somebody_else_created_is_not(marked: str | None, managers: list[str]) -> None:
    assert not is_own(candidate(), live(marked, *managers))


def test_an_object_without_the_stacks_field_manager_belongs_to_no_stack() -> None:
    assert not is_own(candidate(manager=""), live(None, "pulumi-kubernetes"))
