"""People of a tenant query a real Prometheus through a real API server and prom-label-proxy, and see their own series
alone."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from components.cluster import Connection
from components.kubernetes_cluster import KubernetesCluster
from components.monitoring.metrics import Recorded
from components.monitoring.prometheus import PORT
from core.body import Body
from local.control_plane import free_ports
from local.host_pods import egress
from local.rehearsal import Rehearsal
from local.tools import PROM_LABEL_PROXY
from stacks.commands.status.live import usages
from stacks.commands.status.snapshot import Usage
from stacks.load import parse
from stacks.objects.stack import render
from testbed.kubectl import Kubectl
from testbed.machine import lacks
from testbed.pods.steps import until

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

NAMESPACE = "tenant-metrics"

PEOPLE = {"team-a": "alice", "team-b": "bob"}

TENANTS = [{"name": tenant, "users": [f"user:{user}"]} for tenant, user in PEOPLE.items()]

STACK = parse({"monitoring": {"mode": "install", "namespace": NAMESPACE}, "tenants": TENANTS})


def rendered(*kinds: str) -> list[dict[str, Any]]:
    """Objects of the stack in the namespace of its Prometheus."""
    return [
        dict(each.body) for (kind, _), each in render(STACK).items() if kind in kinds and each.namespace == NAMESPACE
    ]


@contextmanager
def running(*command: str | Path, log: Path) -> Iterator[None]:
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()


RECORDS = {
    Recorded.HELD: '8 * up{namespace="team-a"} or 4 * up{namespace="team-b"}',
    Recorded.COST_OF_DAY: '100.5 * up{namespace="team-a"}',
}
"""In place of those of Ray, which does not run here."""


def configuration(address: str) -> Body:
    """It scrapes itself as the target of each tenant."""
    targets = [{"targets": [address], "labels": {"namespace": tenant}} for tenant in PEOPLE]
    scrape = {"job_name": "itself", "scrape_interval": "1s", "static_configs": targets}
    return {"scrape_configs": [scrape], "rule_files": ["rules.yml"]}


@pytest.fixture(scope="module")
def kubectl(cluster: Rehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    """With the stack's Services and rights, the programs behind them on this machine, and data of both tenants.

    The API server's requests to pods arrive at the rehearsal's egress proxy, which leads them to these programs.
    """
    if (program := shutil.which("prometheus")) is None:
        lacks("not on the PATH: prometheus; it is in the package prometheus")
    made, folder, ports = Kubectl(cluster), tmp_path_factory.mktemp("metrics"), free_ports()
    made.does("create", "namespace", NAMESPACE)
    made.does("create", "-f", "-", bodies=rendered("ServiceAccount", "Role", "RoleBinding"))
    prometheus = f"127.0.0.1:{next(ports)}"
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(prometheus)))
    rules = [{"record": str(name), "expr": expression} for name, expression in RECORDS.items()]
    groups = {"groups": [{"name": "records", "interval": "1s", "rules": rules}]}
    (folder / "rules.yml").write_text(yaml.safe_dump(groups))
    flags = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    listening: dict[str, int] = {}
    # The rehearsal's own proxy, which knows no pods, would otherwise take its socket back when it starts.
    until(egress.socket(cluster.run).exists, "the rehearsal's proxy listens", 60, 0.1)
    egress.serve(egress.socket(cluster.run), lambda address, _port: listening.get(address))
    with ExitStack() as stack:
        stack.enter_context(running(program, *flags, f"--web.listen-address={prometheus}", log=folder / "log"))
        for number, deployment in enumerate(rendered("Deployment"), 1):
            name, address, port = deployment["metadata"]["name"], f"10.0.0.{number}", next(ports)
            listening[address] = port
            [container] = deployment["spec"]["template"]["spec"]["containers"]
            own = [f"-insecure-listen-address=127.0.0.1:{port}", f"-upstream=http://{prometheus}"]
            arguments = [each for each in container["args"] if not each.startswith(("-insecure-", "-upstream="))]
            proxy = PROM_LABEL_PROXY.program("prom-label-proxy")
            stack.enter_context(running(proxy, *own, *arguments, log=folder / f"{name}.log"))
            made.does("create", "-f", "-", bodies=behind(name, address))
            core: Any = client.CoreV1Api(cluster.client())
            core.patch_namespaced_pod_status(
                name, NAMESPACE, {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
            )
        until(lambda: all(up(made, tenant) for tenant in PEOPLE), "there are data of both tenants", 60)
        yield made


def behind(name: str, address: str) -> list[dict[str, Any]]:
    """The stack's Service with endpoints, and the pod that these name, which has no node."""
    [service] = [each for each in rendered("Service") if each["metadata"]["name"] == name]
    service["spec"] = {"ports": service["spec"]["ports"]}
    metadata = {"name": name, "namespace": NAMESPACE}
    spec = {
        "schedulerName": "none",
        "serviceAccountName": "prometheus",
        "containers": [{"name": "proxy", "image": "proxy:1"}],
    }
    target = {"kind": "Pod", **metadata}
    subset = {"addresses": [{"ip": address, "targetRef": target}], "ports": [{"port": PORT}]}
    return [
        service,
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]},
    ]


def ask(kubectl: Kubectl, user: str, tenant: str, path: str) -> "subprocess.CompletedProcess[str]":
    """What `kubectl get --raw` of docs/monitoring.md answers a user."""
    service = f"/api/v1/namespaces/{NAMESPACE}/services/prometheus-{tenant}/proxy"
    return kubectl.tries("get", "--raw", f"{service}{path}", f"--as={user}")


def up(kubectl: Kubectl, tenant: str) -> Sequence[dict[str, Any]]:
    done = ask(kubectl, PEOPLE[tenant], tenant, "/api/v1/query?query=up")
    return json.loads(done.stdout)["data"]["result"] if done.returncode == 0 else ()


@pytest.mark.parametrize("tenant", PEOPLE)
def test_a_query_has_the_series_of_the_tenant_alone(kubectl: Kubectl, tenant: str) -> None:
    assert {each["metric"]["namespace"] for each in up(kubectl, tenant)} == {tenant}


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
def test_no_question_leads_to_series_of_others(kubectl: Kubectl, path: str) -> None:
    done = ask(kubectl, "alice", "team-a", path)
    assert done.returncode == 0, done.stderr
    assert "team-b" not in done.stdout


def test_status_has_what_is_recorded_of_each_tenant(kubectl: Kubectl, cluster: Rehearsal) -> None:
    live = KubernetesCluster(Connection(kubeconfig=cluster.kubeconfig.read_text()))
    expected = {"team-a": Usage(gpus_held=8, cost=100.5), "team-b": Usage(gpus_held=4)}
    until(lambda: usages(live, NAMESPACE, [*PEOPLE, "team-c"]) == expected, "all is recorded", 30)


@pytest.mark.parametrize("path", ["/api/v1/targets", "/api/v1/status/config", "/metrics", "/graph", "/-/healthy"])
def test_nothing_else_of_prometheus_is_answered(kubectl: Kubectl, path: str) -> None:
    assert "the server could not find the requested resource" in ask(kubectl, "alice", "team-a", path).stderr


@pytest.mark.parametrize(("user", "service"), [("alice", "team-b"), ("bob", "team-a"), ("eve", "team-a")])
def test_the_api_server_refuses_the_proxies_of_others(kubectl: Kubectl, user: str, service: str) -> None:
    refused = ask(kubectl, user, service, "/api/v1/query?query=up").stderr
    assert f'cannot get resource "services/proxy" in API group "" in the namespace "{NAMESPACE}"' in refused
