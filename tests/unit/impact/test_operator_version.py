"""The reported effects of another operator version. tests/engine/test_operator_upgrade.py verifies them."""

from typing import Any

import pytest

from kuberay.edits import Verdict
from stacks.commands.impact.comparison import impact_of
from stacks.commands.impact.effects import Effect
from stacks.settings import StackSettings
from tests.unit.impact.stacks import effects_on, ray
from tests.unit.planning.stacks import stack, tenant

NO_MARKS = {"RayMultiHostIndexing": False}


def with_operator(version: str, gates: dict[str, bool] | None = None, hosts: int = 1) -> StackSettings:
    group = {"groupName": "tpu", "numOfHosts": hosts, "cpu": 4, "memory": "8Gi", "maxReplicas": 1}
    return stack(tenant("a", ray(workerGroups=[group])), operator={"version": version, "featureGates": gates or {}})


def of_operator(before: StackSettings, after: StackSettings) -> list[Effect]:
    return effects_on("Operator", impact_of(before, after))


def test_an_upgrade_keeps_pods_and_reports_what_new_pods_get() -> None:
    restarts, pods = of_operator(with_operator("1.5.1"), with_operator("1.6.2"))
    assert restarts.verdict is Verdict.ROLLING
    assert "Pods of RayClusters stay" in restarts.text
    assert "another `up`" in restarts.safer
    assert pods.verdict is Verdict.NEW_PODS
    assert "health probes by HTTP" in pods.text


def test_versions_that_create_the_same_pods_have_no_effect_on_pods() -> None:
    assert [each.verdict for each in of_operator(with_operator("1.6.0"), with_operator("1.6.2"))] == [Verdict.ROLLING]


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        (("1.5.1", {}), ("1.6.2", {}), True),
        (("1.5.1", {}), ("1.6.2", NO_MARKS), False),
        (("1.6.2", NO_MARKS), ("1.6.2", {}), True),
        (("1.5.1", {"RayMultiHostIndexing": True}), ("1.6.2", {}), False),
    ],
)
def test_workers_with_several_hosts_would_be_created_twice(before: Any, after: Any, refused: bool) -> None:
    effects = of_operator(*(with_operator(version, gates, hosts=2) for version, gates in (before, after)))
    found = [each for each in effects if each.verdict is Verdict.REFUSED]
    assert bool(found) is refused
    for each in found:
        assert "a/training tpu" in each.text
        assert "RayMultiHostIndexing: false" in each.safer
