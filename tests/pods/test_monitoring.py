"""The stack's own Prometheus, a pod, scrapes Ray, KubeRay and Volcano through the stack's NetworkPolicies, has what the
rules ask for, and shows a tenant's people their own."""

import json
import re
from collections.abc import Iterator
from functools import partial

import pytest

from components.monitoring.dashboards import FLEET, QUEUES, TENANT
from components.monitoring.metrics import CertManager, Gateway, Job, KubeRay, Kueue, Ray, Redis, Volcano
from components.monitoring.prometheus import NAME, service_of
from components.monitoring.rules import ALERTS
from components.monitoring.settings import DEFAULT_NAMESPACE
from testbed.pods.platform import CLUSTER, NAMESPACE, REVIEWED, SECURED, USER, Platform
from testbed.pods.prometheus import Prometheus
from testbed.pods.steps import Steps, until
from testbed.ray_dashboards import queries

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

HOLD = """
import ray, sys, time
ray.init(logging_level="error")
group = ray.util.placement_group([{"CPU": 0.01}])
ray.get(group.ready())
task = ray.remote(num_cpus=0)(lambda: time.sleep(3600)).remote()
never = ray.remote(num_gpus=100)(lambda: None).remote(), ray.util.placement_group([{"GPU": 100}])
holder = ray.remote(num_gpus=1, num_cpus=0)(type("Holder", (), {"holds": lambda self: "holds a GPU"})).remote()
print(ray.get(holder.holds.remote()), flush=True)
sys.stdin.read()
"""
"""Holds a GPU with an actor, beside a task that runs, a placement group, and one of each that have no room."""

ALWAYS = {
    Ray.STARTED,
    Ray.RESOURCES,
    Ray.UNSCHEDULABLE_TASKS,
    Ray.OBJECT_STORE,
    Ray.DISK_PERCENT,
    Ray.MEMORY,
    Ray.GCS,
    Ray.PENDING_NODES,
    Ray.AUTOSCALER_EXCEPTIONS,
    KubeRay.CLUSTER_PROVISIONED,
    *Volcano,
}
"""Metrics that exist although nothing is wrong."""

ABSENT = {
    KubeRay.JOB_STATUS: "there is no RayJob here; test_ray_jobs.py finds it",
    KubeRay.SERVICE_READY: "there is no RayService here; test_ray_services.py finds it",
    Ray.REQUESTS: "Ray Serve does not run here",
    **dict.fromkeys((*Gateway, *Redis), "there is no Redis here; failover/test_masters.py finds them"),
    **dict.fromkeys(Kueue, "Volcano schedules here; tests/engine/test_kueue.py finds them"),
    **dict.fromkeys(CertManager, "there is no cert-manager"),
}
"""The other metrics of the rules, and why they do not exist here. Placement groups and tasks exist in a test below."""


@pytest.fixture(scope="module")
def prometheus(platform: Platform) -> Iterator[Prometheus]:
    with Prometheus.installed_by(platform) as prometheus:
        yield prometheus


def test_all_targets_answer_with_and_without_tls_tokens_and_autoscaler(
    prometheus: Prometheus, platform: Platform, steps: Steps
) -> None:
    heads = {
        (str(job), each) for job in (Job.HEAD, Job.AUTOSCALER, Job.DASHBOARD) for each in (CLUSTER, SECURED, REVIEWED)
    }
    others = {(str(job), "") for job in (Job.OPERATOR, Job.VOLCANO_SCHEDULER, Job.VOLCANO_CONTROLLERS)}

    def silent() -> set[tuple[str, str]]:
        answer = [each["metric"] for each in prometheus.query("up == 1")]
        return (heads | others) - {(each["job"], each.get("ray_io_cluster", "")) for each in answer}

    with steps.step("Prometheus has scraped all targets"):
        until(lambda: not silent(), "all targets answer")
    tenants = prometheus.values('up{ray_io_cluster!=""}', "namespace")
    assert tenants.keys() == {NAMESPACE}
    assert prometheus.query('{job=~"ray-.+", ray_io_cluster=""}') == []
    assert prometheus.query('{job=~"ray-.+", namespace=""}') == []


def test_a_user_of_the_tenant_queries_its_series_alone(prometheus: Prometheus, platform: Platform) -> None:
    def question(service: str) -> tuple[str, ...]:
        path = f"/api/v1/namespaces/{DEFAULT_NAMESPACE}/services/{service}/proxy/api/v1/query?query=up"
        return "get", "--raw", path, f"--as=system:serviceaccount:{NAMESPACE}:{USER}"

    until(lambda: prometheus.values("up", "namespace").keys() > {NAMESPACE}, "there are series of others")
    seen = json.loads(platform.kubectl(*question(service_of(NAMESPACE))))["data"]["result"]
    assert {each["metric"]["namespace"] for each in seen} == {NAMESPACE}
    assert 'cannot get resource "services/proxy"' in platform.refusal(*question(NAME))


def test_the_metrics_of_the_rules_exist(prometheus: Prometheus, steps: Steps) -> None:
    def missing() -> set[str]:
        return {name for name in ALWAYS if not prometheus.query(name)}

    with steps.step("Prometheus has the metrics of the rules"):
        until(lambda: not missing(), f"no metric of {sorted(ALWAYS)} is missing")
    known = {*Ray, *KubeRay, *Gateway, *Redis, *Volcano, *Kueue, *CertManager}
    assert known == ALWAYS | ABSENT.keys() | {Ray.PLACEMENT_GROUPS, Ray.TASKS}
    assert [name for name in ABSENT if prometheus.query(name)] == []
    [provisioned] = prometheus.query(f'{KubeRay.CLUSTER_PROVISIONED}{{ray_io_cluster="{CLUSTER}"}}')
    assert (provisioned["metric"]["namespace"], provisioned["metric"]["condition"]) == (NAMESPACE, "true")


def test_a_gpu_that_an_actor_holds_is_held_and_used(prometheus: Prometheus, platform: Platform, steps: Steps) -> None:
    gpus = f'{Ray.RESOURCES}{{Name="GPU",job="{Job.WORKER}",ray_io_cluster="{CLUSTER}"}}'
    task = platform.start_in_head(HOLD)
    try:
        assert task.stdout is not None
        assert any("holds a GPU" in line for line in task.stdout)
        with steps.step("Prometheus knows that a GPU is used"):
            until(lambda: prometheus.values(gpus, "State").get("USED") == 1, "a GPU is used")
        [used] = prometheus.query(f'{gpus.removesuffix("}")},State="USED"}}')
        assert used["metric"]["ray_io_group"] == "laptop-1gpu"
        assert used["metric"]["ray_io_node_type"] == "worker"
        assert prometheus.query(f'up{{job="{Job.WORKER}",ray_io_cluster="{CLUSTER}"}} == 1')
        assert all(any(re.search(each, query) for query in queries("default")) for each in NO_DATA)
        for pending in ALERTS["RayDemandPending"].condition.split(" or "):
            until(partial(prometheus.query, pending), f"{pending} has data")
        with steps.step("Prometheus has what the dashboard of Ray asks for"):
            until(lambda: not without_data(prometheus), "each query has data", pause=5)
        # A worker that has just started, also one of an earlier test, is idle until the next record, a minute later.
        until(lambda: not prometheus.firing(), "no alert fires")
    finally:
        task.communicate("")


NO_DATA = {
    "_gpus?_|_gram_|_tpu_": "there is no such device",
    "_worker_eviction_": "Ray has killed no task for its memory",
    "_unexpected_worker_failure_": "no worker process has failed",
    'IsRetry!="0"': "no task is tried again",
}
"""Queries of Ray's default dashboard without data, and why. Those of its other dashboards are about Serve, Data and
Train, none of which runs here; promtool judges them (tests/unit/monitoring)."""


def without_data(prometheus: Prometheus) -> list[str]:
    """Queries of Ray's default dashboard that have neither data nor a reason."""
    asked = (query for query in queries("default") if not re.search("|".join(NO_DATA), query))
    return [query for query in asked if not prometheus.query(query)]


REQUEST = """
import ray, sys
from ray.autoscaler.sdk import request_resources
ray.init(logging_level="error")
request_resources(bundles=[{"GPU": 1}] * int(sys.argv[1]))
"""
"""Keeps workers whether or not a task runs there."""

SILENT = {
    "RayJobs": "the stack has none",
    "Requests per second": "Ray Serve does not run here",
    "RayClusters that are not ready": "all are ready",
    "Workloads that wait, by queue of Kueue": "Volcano schedules here",
    "Workloads that are admitted, by queue of Kueue": "Volcano schedules here",
}
"""Panels without data, and why."""


@pytest.mark.timeout(500, func_only=True)
def test_a_gpu_that_is_held_idle_raises_its_alert_and_every_panel_has_data(
    prometheus: Prometheus, platform: Platform, steps: Steps
) -> None:
    # It may fire for a RayCluster of an earlier test, too, whose groups have no price.
    idle = f'ALERTS{{alertname="RayGpusIdle",alertstate="firing",ray_io_cluster="{CLUSTER}"}}'
    platform.in_head("python", "-c", REQUEST, "1")
    try:
        with steps.step("the alert of an idle GPU fires"):
            until(lambda: prometheus.query(idle), "the alert fires", pause=2)
        panels = [panel for board in (FLEET, TENANT, QUEUES) for panel in board.panels]
        silent = {panel.title for panel in panels if not prometheus.query(panel.query.replace("$tenant", ".*"))}
    finally:
        platform.in_head("python", "-c", REQUEST, "0")
    assert silent - {"Tasks that run"} == SILENT.keys()
    assert prometheus.not_evaluated() == {}
    with steps.step("the alert has ended"):
        until(lambda: not prometheus.query(idle), "the alert ends", pause=2)
