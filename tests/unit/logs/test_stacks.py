"""Logs of tenants' own stacks, and what an edit of logs means."""

from typing import Any

import pytest

from components.logs.collector import config_map
from components.logs.settings import LogsSettings
from stacks.commands.impact.kinds import LOG_COLLECTORS, kind_of
from stacks.load import parse
from stacks.objects.platform_outputs import PlatformMismatchError, check, exported

PLATFORM = "acme/ray-platform/prod"

LOGS = {"endpoint": "http://loki.loki.svc:3100", "egress": [{"namespace": "loki", "ports": [3100]}]}

CLUSTER = {"name": "adhoc", "rayVersion": "2.60.0", "image": "rayproject/ray:2.60.0"}


def outputs(**keys: Any) -> dict[str, Any]:
    """The outputs of the platform's stack."""
    stack = parse({"tenants": [{"name": "team-a", "clusterNames": ["adhoc"]}], **keys})
    return {"operator": {"version": "1.6.2", "namespace": "ray-system"}, **exported(stack)}


def own(**keys: Any) -> Any:
    """A tenant's own stack."""
    tenants = [{"name": "team-a", "clusters": [CLUSTER]}]
    return parse({"platform": {"stack": PLATFORM}, "tenants": tenants, **keys})


def test_a_tenants_own_stack_has_logs_where_the_platform_has() -> None:
    check(own(logs=LOGS), PLATFORM, outputs(logs=LOGS))
    check(own(), PLATFORM, outputs())
    with pytest.raises(PlatformMismatchError, match="has no logs for tenant 'team-a': remove logs, or set it there"):
        check(own(logs=LOGS), PLATFORM, outputs())
    with pytest.raises(PlatformMismatchError, match="has logs for tenant 'team-a': set logs as it is there"):
        check(own(), PLATFORM, outputs(logs=LOGS))


def test_a_platform_without_logs_has_the_outputs_that_it_had() -> None:
    assert "logs" not in outputs()["tenants"]["team-a"]


def test_impact_does_not_take_the_configuration_for_one_of_redis() -> None:
    assert kind_of(config_map(LogsSettings.model_validate(LOGS), "team-a")) is LOG_COLLECTORS
