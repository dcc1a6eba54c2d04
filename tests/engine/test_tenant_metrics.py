"""People of a tenant query a real Prometheus through a real API server and prom-label-proxy, and see their own series
alone."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.cluster import Connection
from components.kubernetes_cluster import KubernetesCluster
from components.monitoring.metrics import Recorded
from core.body import Body
from local.control_plane import free_ports
from local.rehearsal import Rehearsal
from local.tools import PROM_LABEL_PROXY
from stacks.commands.page.charts import HOURS, Line, charts
from stacks.commands.page.view import COLOURS
from stacks.commands.status.live import usages
from stacks.commands.status.snapshot import Usage
from stacks.load import parse
from testbed.machine import lacks
from testbed.pods.steps import until
from testbed.tenant_proxies import PEOPLE, TENANTS, Proxied, proxied, running

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

NAMESPACE = "tenant-metrics"

STACK = parse({"monitoring": {"mode": "install", "namespace": NAMESPACE}, "tenants": TENANTS})


RECORDS = {
    Recorded.HELD: '8 * up{namespace="team-a"} or 4 * up{namespace="team-b"}',
    Recorded.COST_OF_DAY: '100.5 * up{namespace="team-a"}',
}
"""In place of those of Ray, which does not run here."""


def configuration(address: str) -> Body:
    """It scrapes itself as the target of each tenant."""
    targets = [
        {"targets": [address], "labels": {"namespace": tenant, "ray_io_cluster": "training"}} for tenant in PEOPLE
    ]
    scrape = {"job_name": "itself", "scrape_interval": "1s", "static_configs": targets}
    return {"scrape_configs": [scrape], "rule_files": ["rules.yml"]}


@pytest.fixture(scope="module")
def proxies(cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """The proxies before a Prometheus with data of both tenants."""
    if (program := shutil.which("prometheus")) is None:
        lacks("not on the PATH: prometheus; it is in the package prometheus")
    folder = tmp_path_factory.mktemp("metrics")
    prometheus = f"127.0.0.1:{next(free_ports())}"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(prometheus)))
    rules = [{"record": str(name), "expr": expression} for name, expression in RECORDS.items()]
    groups = {"groups": [{"name": "records", "interval": "1s", "rules": rules}]}
    (folder / "rules.yml").write_text(yaml.safe_dump(groups))
    flags = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]

    def command(container: Body, address: str) -> list[str | Path]:
        arguments = [each for each in container["args"] if not each.startswith(("-insecure-", "-upstream="))]
        own = [f"-insecure-listen-address={address}", f"-upstream=http://{prometheus}"]
        return [PROM_LABEL_PROXY.program("prom-label-proxy"), *own, *arguments]

    with (
        running(program, *flags, f"--web.listen-address={prometheus}", log=folder / "log"),
        proxied(cluster, STACK, NAMESPACE, command, folder) as made,
    ):
        until(lambda: all(up(made, tenant) for tenant in PEOPLE), "there are data of both tenants", 60)
        yield made


def ask(proxies: Proxied, user: str, tenant: str, path: str) -> "subprocess.CompletedProcess[str]":
    return proxies.ask(user, f"prometheus-{tenant}", path)


def up(proxies: Proxied, tenant: str) -> Sequence[dict[str, Any]]:
    done = ask(proxies, PEOPLE[tenant], tenant, "/api/v1/query?query=up")
    return json.loads(done.stdout)["data"]["result"] if done.returncode == 0 else ()


@pytest.mark.parametrize("tenant", PEOPLE)
def test_a_query_has_the_series_of_the_tenant_alone(proxies: Proxied, tenant: str) -> None:
    assert {each["metric"]["namespace"] for each in up(proxies, tenant)} == {tenant}


@pytest.mark.parametrize(
    "path",
    [
        '/api/v1/query?query=up{namespace="team-b"}',
        '/api/v1/query?query=up{namespace=~".*"}',
        '/api/v1/query?query=up{namespace="team-a"}+or+up{namespace="team-b"}',
        "/api/v1/query?query=count+by+(namespace)(up)",
        "/api/v1/series?match[]=up",
        "/api/v1/label/namespace/values",
        "/api/v1/alerts",
        "/api/v1/rules",
        "/federate?match[]=up",
    ],
)
def test_no_question_leads_to_series_of_others(proxies: Proxied, path: str) -> None:
    done = ask(proxies, "alice", "team-a", path)
    assert done.returncode == 0, done.stderr
    assert "team-b" not in done.stdout


def test_status_has_what_is_recorded_of_each_tenant(proxies: Proxied, cluster: Rehearsal) -> None:
    live = KubernetesCluster(Connection(kubeconfig=cluster.kubeconfig.read_text()))
    expected = {"team-a": Usage(gpus_held=8, cost=100.5), "team-b": Usage(gpus_held=4)}
    until(lambda: usages(live, NAMESPACE, [*PEOPLE, "team-c"]) == expected, "all is recorded", 30)


def test_the_page_has_charts_of_each_tenant_with_the_rights_of_its_people(
    proxies: Proxied, cluster: Rehearsal, monkeypatch: pytest.MonkeyPatch
) -> None:
    del proxies
    title = "GPUs held, by RayCluster and group"

    def drawn(user: str, tenant: str) -> dict[str, tuple[Line, ...]]:
        live = KubernetesCluster(Connection(kubeconfig=cluster.kubeconfig.read_text()))
        monkeypatch.setattr(live, "request", partial(live.request, headers={"Impersonate-User": user}))
        return {each.title: each.lines for each in charts(live, NAMESPACE, tenant, time.time(), COLOURS)}

    until(lambda: title in drawn("alice", "team-a"), "the records are there", 30)
    assert drawn("alice", "team-a")[title] == (Line("training", f"M{HOURS - 1} 0.0H{HOURS}", "8", "8"),)
    assert drawn("alice", "team-b") == drawn("eve", "team-a") == {}


@pytest.mark.parametrize("path", ["/api/v1/targets", "/api/v1/status/config", "/metrics", "/graph", "/-/healthy"])
def test_nothing_else_of_prometheus_is_answered(proxies: Proxied, path: str) -> None:
    assert "the server could not find the requested resource" in ask(proxies, "alice", "team-a", path).stderr


@pytest.mark.parametrize(("user", "service"), [("alice", "team-b"), ("bob", "team-a"), ("eve", "team-a")])
def test_the_api_server_refuses_the_proxies_of_others(proxies: Proxied, user: str, service: str) -> None:
    refused = ask(proxies, user, service, "/api/v1/query?query=up").stderr
    assert f'cannot get resource "services/proxy" in API group "" in the namespace "{NAMESPACE}"' in refused
