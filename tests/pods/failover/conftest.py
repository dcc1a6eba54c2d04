"""A node of its own: a stack with a Redis of three nodes, and two RayClusters of one name that keep their GCS in it."""

import copy
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from local.images import REDIS
from tests.engine.platform_stack import training
from tests.pods.failover.day import DAY, Day
from tests.pods.failover.driver import working
from tests.pods.failover.redis import KINDS, Redis
from tests.pods.platform import NAMESPACE, Platform, brought_up
from tests.pods.steps import Steps

RUNS = int(os.environ.get("FAILOVERS", "20"))
"""How many times a master is lost."""

OTHER = "team-b"

WORKER = {
    "groupName": "one",
    "cpu": 1,
    "memory": "4Gi",
    "replicas": 1,
    "rayStartParams": {"object-store-memory": "100000000"},
    "podTemplate": {
        "spec": {"containers": [{"name": "ray-worker", "resources": {"requests": {"cpu": "50m", "memory": "512Mi"}}}]}
    },
}


def fault_tolerant(settings: dict[str, Any]) -> None:
    """Two tenants, each with a RayCluster of the same name; one of these has a worker, which stays."""
    settings["redis"] = {"image": REDIS.reference}
    cluster = training(settings)
    for key in ("workers", "idleTimeout"):
        del cluster[key]
    cluster |= {"faultTolerance": True, "autoscaling": False}
    settings["tenants"].append({"name": OTHER, "allowDelete": True, "clusters": [copy.deepcopy(cluster)]})
    cluster["workerGroups"] = [WORKER]


@pytest.fixture(scope="session")
def platform(built: None, folder: Path, steps: Steps) -> Iterator[Platform]:
    """The stack, up."""
    with brought_up(folder, steps, fault_tolerant) as platform:
        yield platform


@pytest.fixture(scope="session")
def redis(platform: Platform) -> Redis:
    """Its Redis."""
    return Redis(platform)


@pytest.fixture(scope="session")
def day(platform: Platform, redis: Redis, pytestconfig: pytest.Config) -> Day:
    """Masters are lost one after the other, in all ways in turn, while Ray works."""
    before = started(platform)
    with working(platform) as noticed:
        losses = [redis.lose_master(kind) for kind in itertools.islice(itertools.cycle(KINDS), RUNS)]
    day = Day(losses, noticed, before, started(platform), gateway_counts(platform))
    return pytestconfig.stash.setdefault(DAY, day)


def started(platform: Platform) -> dict[str, dict[str, int]]:
    """Of each of Ray's pods, by its name, how often each of its containers was started again."""
    pods = {**platform.pods("ray.io/cluster"), **platform.pods("ray.io/cluster", OTHER)}
    return {name: restarts(pod) for name, pod in pods.items()}


def gateway_counts(platform: Platform) -> dict[str, float]:
    """What the gateway beside the head has counted (docs/redis-gateway.md, Probes, metrics, end)."""
    said = platform.in_head("wget", "-qO-", "http://127.0.0.1:9399/metrics")
    samples = (sample for family in text_string_to_metric_families(said) for sample in family.samples)
    return {sample.name: sample.value for sample in samples if not sample.labels}


def restarts(pod: dict[str, Any]) -> dict[str, int]:
    """How often each container of a pod was started again."""
    status = pod["status"]
    each = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    return {container["name"]: container["restartCount"] for container in each}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Each loss with its times."""
    if day := config.stash.get(DAY, None):
        terminalreporter.section(f"masters of {NAMESPACE}'s Redis lost, seconds")
        terminalreporter.write_line(day.table())
