"""A separate node with the stack, and the run in which its masters are lost."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.failover.day import LOSSES, Day
from testbed.failover.driver import working
from testbed.failover.redis import KINDS, Redis
from testbed.failover.stack import fault_tolerant, gateway_counts, started
from testbed.pods.platform import Platform, brought_up
from testbed.pods.prometheus import Prometheus
from testbed.pods.steps import Steps, until

FAILOVER = "RayRedisFailover"
"""The alert of a lost master."""

RUNS = int(os.environ.get("FAILOVERS") or 5)
"""Number of masters to lose: at least one in each way."""


@pytest.fixture(scope="package")
def platform(built: None, folder: Path, steps: Steps) -> Iterator[Platform]:
    """The stack after `pulumi up`. Its node ends with these tests."""
    with brought_up(folder, steps, fault_tolerant) as platform:
        yield platform


@pytest.fixture(scope="package")
def redis(platform: Platform) -> Redis:
    """Its Redis."""
    return Redis(platform)


@pytest.fixture(scope="package")
def prometheus(platform: Platform) -> Prometheus:
    """It scrapes the stack while masters are lost."""
    return Prometheus.of(platform)


@pytest.fixture(scope="package")
def day(platform: Platform, redis: Redis, request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Day:
    """Masters are lost one after the other, in all ways in turn, while Ray works, and Prometheus if it is installed."""
    if Prometheus.installed():
        prometheus: Prometheus = request.getfixturevalue("prometheus")
        until(lambda: not prometheus.not_evaluated(), "it has evaluated all rules")
        assert FAILOVER not in {name for name, _ in prometheus.firing()}
    before = started(platform)
    with working(platform) as noticed:
        losses = [redis.lose_master(kind) for kind in itertools.islice(itertools.cycle(KINDS), RUNS)]
    day = Day(losses, noticed, before, started(platform), gateway_counts(platform))
    pytestconfig.stash[LOSSES] = day.table()
    return day
