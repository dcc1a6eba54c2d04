"""Masters of Redis are lost, and users of Ray lose nothing."""

import pytest

from components.monitoring.dashboards import REDIS
from components.monitoring.metrics import Gateway, Job
from components.monitoring.metrics import Redis as Exporter
from testbed.failover.day import Day
from testbed.failover.redis import SYSTEM, Redis
from testbed.failover.stack import OTHER
from testbed.pods.platform import CLUSTER, NAMESPACE
from testbed.pods.prometheus import Prometheus
from testbed.pods.steps import Steps, until
from tests.pods.failover.conftest import FAILOVER

IN_TIME_SECONDS = 180
"""A failover of up to a minute, a scrape and an evaluation of the rules; docs/monitoring.md."""

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(3600)]


def test_two_clusters_of_one_name_have_separate_keys(redis: Redis) -> None:
    found = redis.keys()
    for namespace in (NAMESPACE, OTHER):
        assert [key for key in found if key.startswith(f"RAY{namespace}.{CLUSTER}.")], namespace
    assert not [key for key in found if not key.startswith((f"RAY{NAMESPACE}.", f"RAY{OTHER}.", "redis-gateway:"))]


def test_no_head_and_no_worker_restarts(day: Day) -> None:
    assert day.after == day.before
    assert not any(restarts for pod in day.after.values() for restarts in pod.values())


def test_prometheus_has_the_metrics_of_redis_and_of_the_gateways(
    prometheus: Prometheus, day: Day, steps: Steps
) -> None:
    def silent() -> set[str]:
        up = prometheus.query("up == 1")
        answer = [(each["metric"]["job"], each["metric"]["namespace"]) for each in up]
        desired = {(str(Job.REDIS), SYSTEM): 3, (str(Job.GATEWAY), NAMESPACE): 1, (str(Job.GATEWAY), OTHER): 1}
        return {f"{job} in {space}" for (job, space), number in desired.items() if answer.count((job, space)) < number}

    with steps.step("Prometheus has scraped Redis and the gateways"):
        until(lambda: not silent(), "all of them answer")
    assert [name for name in (*Exporter, *Gateway) if not prometheus.query(name)] == []
    assert [panel.title for panel in REDIS.panels if not prometheus.query(panel.query)] == []
    # The last scrape of an exporter may be of the time when its Redis was lost.
    until(lambda: set(prometheus.values(Exporter.UP, "pod").values()) == {1.0}, "all exporters reach their Redis")


def test_the_alert_of_a_failover_fires_and_none_of_lost_writes(prometheus: Prometheus, day: Day, steps: Steps) -> None:
    failovers = {(FAILOVER, NAMESPACE), (FAILOVER, OTHER)}
    until(lambda: prometheus.firing() >= failovers, "it fires for both RayClusters")
    after = max(prometheus.first_fired(FAILOVER).values()) - day.losses[0].at
    steps.took("from the loss of a master until its alert has fired for both RayClusters", after)
    assert 0 < after < IN_TIME_SECONDS
    worse = {"RayRedisGatewayLostWrites", "RayRedisQuorumLost", "RayRedisUnreachable"}
    assert not worse & {name for name, _ in prometheus.firing()}
    assert prometheus.not_evaluated() == {}


def test_no_call_fails(day: Day) -> None:
    assert {work: day.noticed[work]["failed"] for work in ("keys", "actors", "detached")} == {
        "keys": [],
        "actors": [],
        "detached": [],
    }


def test_no_acknowledged_write_is_lost(day: Day) -> None:
    assert day.gateway["redis_gateway_lost_writes_total"] == 0
    assert day.noticed["missing_keys"] == []
    assert day.noticed["lost_actors"] == []
    assert day.noticed["keeper_kept"]


def test_names_of_restarted_nodes_are_known_without_dns(redis: Redis, day: Day) -> None:
    assert any(loss.kind == "force" for loss in day.losses)
    pods = redis.pods()
    for pod in pods:
        known = redis.names(pod)
        assert {name.partition(".")[0]: address for name, address in known.items()} == {
            name: each["status"]["podIP"] for name, each in pods.items()
        }
