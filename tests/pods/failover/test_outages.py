"""Outages that are worse than a lost master: Ray waits, and then continues."""

from functools import partial

import pytest

from testbed.failover.driver import working
from testbed.failover.redis import Redis
from testbed.failover.stack import gateway_counts, started
from testbed.pods.platform import CLUSTER, NAMESPACE, Platform
from testbed.pods.steps import Steps, until
from tests.pods.failover.outages import OUTAGES

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

WORKER = f"ray.io/node-type=worker,ray.io/cluster={CLUSTER}"

KEEP = """
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
ray.init(logging_level="error", namespace="kept")

@ray.remote(num_cpus=0, lifetime="detached", name="kept", get_if_exists=True)
class Kept:
    def __init__(self):
        self.count = 0
    def add(self):
        self.count += 1
        return self.count

nodes = [node for node in ray.nodes() if node["Alive"]]
(worker,) = (node["NodeID"] for node in nodes if "node:__internal_head__" not in node["Resources"])
kept = Kept.options(scheduling_strategy=NodeAffinitySchedulingStrategy(worker, soft=False)).remote()
print("counted", ray.get(kept.add.remote(), timeout=60))
"""


@pytest.mark.parametrize("outage", OUTAGES)
def test_nothing_restarts_and_nothing_is_lost(platform: Platform, redis: Redis, steps: Steps, outage: str) -> None:
    until(redis.whole, "Redis is whole")
    before = started(platform)
    with working(platform) as noticed, steps.step(f"{outage}: until Redis is whole again"):
        OUTAGES[outage](redis)
        until(redis.whole, "Redis is whole again")
    assert started(platform) == before
    assert {work: noticed[work]["failed"] for work in ("keys", "actors", "detached")} == {
        "keys": [],
        "actors": [],
        "detached": [],
    }
    assert gateway_counts(platform)["redis_gateway_lost_writes_total"] == 0
    assert (noticed["missing_keys"], noticed["lost_actors"], noticed["keeper_kept"]) == ([], [], True)


def test_an_actor_on_a_worker_outlives_repeated_kills_of_the_control_plane(platform: Platform, steps: Steps) -> None:
    (worker,) = platform.pods(WORKER, NAMESPACE)
    before = started(platform)[worker]
    assert "counted 1" in platform.in_head("python", "-c", KEEP)
    for count in range(2, 5):
        head = platform.head()
        with steps.step("gcs_server killed, and a new head is ready"):
            platform.in_head("pkill", "-KILL", "gcs_server")
            until(partial(_another_head, platform, head), "a new head is ready")
        assert f"counted {count}" in platform.in_head("python", "-c", KEEP)
    assert started(platform)[worker] == before


def _another_head(platform: Platform, before: str | None) -> bool:
    return platform.head() not in (None, before)
