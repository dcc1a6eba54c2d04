"""Checks that protect running clusters from an operator upgrade. tests/engine/test_operator_upgrade.py does one."""

from typing import Any

import pytest

from components.cluster import Cluster
from components.operator import upgrade
from components.operator.settings import OperatorSettings
from components.operator.upgrade import (
    Live,
    UnsafeUpgradeError,
    check_change,
    check_hosts,
    check_release,
    outdated_crds,
)
from kuberay.releases import groups_with_hosts
from testbed.fake_cluster import FakeCluster

NOTHING = Live(None, None)


def desired(version: str, **settings: Any) -> OperatorSettings:
    return OperatorSettings(version=version, **settings)


@pytest.mark.parametrize(
    ("there", "version"),
    [
        (NOTHING, "1.5.1"),
        (Live("1.5.1", "1.5", ("v1",)), "1.6.2"),
        (Live("1.5.1", "1.6", ("v1",)), "1.6.2"),  # an `up` that was interrupted after the CRDs
        (Live("1.4.2", None, ("v1",)), "1.6.2"),
        (Live("1.6.2", "1.6", ("v1",)), "1.6.0"),
        (Live("1.6.2", "1.6", ("v1",)), "1.7.0"),
    ],
)
def test_an_upgrade_is_allowed(there: Live, version: str) -> None:
    check_release(there, desired(version))


@pytest.mark.parametrize(
    "there",
    [
        Live("1.6.2", "1.6", ("v1",)),
        Live("1.5.1", "1.6", ("v1",)),
        Live(None, "1.6", ("v1",)),
        Live("1.10.0", "1.5", ("v1",)),
    ],
)
def test_a_downgrade_is_refused(there: Live) -> None:
    with pytest.raises(
        UnsafeUpgradeError, match=r"operator.version is 1.5.1, and the cluster has: .* a downgrade.*Keep"
    ):
        check_release(there, desired("1.5.1"))


@pytest.mark.parametrize(
    ("there", "behind"),
    [
        (Live("1.6.2", "1.5", ("v1",)), True),
        (Live("1.6.2", None, ("v1",)), True),
        (Live("1.5.1", "1.6", ("v1",)), False),
        (Live("1.6.2", "1.6", ("v1",)), False),
        (Live("1.4.2", None, ("v1",)), False),
        (Live(None, "1.5", ("v1",)), False),
        (NOTHING, False),
    ],
)
def test_crds_older_than_the_operator_are_reported(there: Live, behind: bool) -> None:
    warning = outdated_crds(there)
    assert (warning is not None) is behind
    assert "run `pulumi refresh`" in (warning or "run `pulumi refresh`")


def test_worker_groups_that_would_be_created_twice_are_named_with_a_fix() -> None:
    live, named = Live("1.5.1", "1.5", ("v1",), marks_hosts=False), [f"team-a/tpu group-{at:02}" for at in range(12)]
    with pytest.raises(UnsafeUpgradeError, match=r"group-00, .*group-09 and 2 more.*RayMultiHostIndexing: false"):
        check_hosts(live, desired("1.6.2"), named)
    check_hosts(live, desired("1.6.2"), [])


@pytest.mark.parametrize(
    ("there", "settings", "looked"),
    [
        (Live("1.5.1", "1.5", ("v1",), marks_hosts=False), {}, True),
        (Live("1.5.1", "1.5", ("v1",), marks_hosts=False), {"feature_gates": {"RayMultiHostIndexing": False}}, False),
        (Live("1.6.2", "1.6", ("v1",)), {}, False),
        (NOTHING, {}, False),
    ],
)
def test_pods_are_read_only_if_the_operator_begins_to_mark_them(
    monkeypatch: pytest.MonkeyPatch, there: Live, settings: dict[str, Any], looked: bool
) -> None:
    asked: list[Cluster] = []
    cluster = FakeCluster()

    def without_marks(cluster: Cluster) -> list[str]:
        asked.append(cluster)
        return []

    monkeypatch.setattr(upgrade, "look", lambda *_: there)
    monkeypatch.setattr(upgrade, "without_marks", without_marks)
    check_change(cluster, desired("1.6.2", **settings))
    assert asked == [cluster] * looked


def test_worker_groups_with_several_hosts_are_recognized() -> None:
    groups = [{"groupName": "tpu", "numOfHosts": 4}, {"groupName": "gpu", "numOfHosts": 1}, {"groupName": "cpu"}]
    assert groups_with_hosts({"spec": {"workerGroupSpecs": groups}}) == ["tpu"]
    assert groups_with_hosts({"spec": {}}) == []
