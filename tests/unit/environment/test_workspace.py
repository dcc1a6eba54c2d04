"""Which of Pulumi's stacks are those of an environment."""

from types import SimpleNamespace

import pytest

from stacks.commands.environment import workspace as environment_workspace
from stacks.commands.environment.workspace import ROOT, Stacks, StacksError

OWN = ["prod", "prod.tenants-01", "other"]
OF_A_TEAM = ["team/prod", "team/prod.tenants-02", "team/other"]


def stacks(environment: str, listed: list[str], monkeypatch: pytest.MonkeyPatch) -> Stacks:
    workspace = SimpleNamespace(list_stacks=lambda: [SimpleNamespace(name=name) for name in listed])
    monkeypatch.setattr(environment_workspace, "_Workspace", lambda **_: workspace)
    return Stacks(environment, ROOT / "Pulumi.prod.yaml")


@pytest.mark.parametrize(
    ("environment", "listed", "group"),
    [
        ("prod", [*OWN, *OF_A_TEAM], 1),
        ("team/prod", [*OWN, *OF_A_TEAM], 2),
        ("team/ray-platform/prod", [*OWN, *OF_A_TEAM], 2),
        ("team/prod", OWN, 1),
        ("organization/ray-platform/prod", OWN, 1),
    ],
)
def test_stacks_are_found_by_each_name_that_pulumi_takes(
    environment: str, listed: list[str], group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulumi lists stacks of the user's own organization by their names alone."""
    found = stacks(environment, listed, monkeypatch).existing()
    assert found == {environment, f"{environment}.tenants-0{group}"}


def test_a_stack_of_another_organization_is_another_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StacksError, match="there is no stack prod: run `pulumi stack init prod`"):
        stacks("prod", OF_A_TEAM, monkeypatch).existing()
