"""Every cell of the port matrix, tried with real packets on a node that enforces NetworkPolicies."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from components.monitoring.prometheus import PORT, PROXIES, SELECTOR
from components.monitoring.settings import DEFAULT_NAMESPACE
from components.network.manifests import DEPLOYED
from local import paths
from local.images import RAY
from local.real_node.programs import DNS
from testbed.pods.node import is_ready
from testbed.pods.platform import CLUSTER, NAMESPACE, Platform, PodsStack, plugins, pods_cluster
from testbed.pods.steps import Steps, until
from tests.pods.port_matrix import DESTINATIONS, PORTS, REACH, SOURCES

pytestmark = [pytest.mark.pods, pytest.mark.thorough, pytest.mark.timeout(300, func_only=True)]

FILE = paths.ROOT / "tests" / "pods" / "Pulumi.network.yaml"

ALLOWED_PORT, OTHER_PORT = 8443, 8444
"""Ports of the node's address: one that the tenant's egress allows, and one that it does not."""

LISTEN = """
import asyncio, sys
async def main():
    close = lambda _, writer: writer.close()
    servers = [await asyncio.start_server(close, "0.0.0.0", int(port)) for port in sys.argv[1:]]
    await asyncio.gather(*(server.serve_forever() for server in servers))
asyncio.run(main())
"""

TRY = """
import concurrent.futures, json, socket, sys
def reached(address):
    try:
        socket.create_connection(address, timeout=4).close()
    except TimeoutError:
        return False
    except ConnectionRefusedError:
        pass
    return True
with concurrent.futures.ThreadPoolExecutor(32) as pool:
    print(json.dumps(list(pool.map(reached, map(tuple, json.loads(sys.argv[1]))))))
"""
"""A refused connection counts as reached: no policy blocked it. A blocked one gets no answer."""


@dataclass(frozen=True)
class Place:
    """A pod of the tests."""

    namespace: str
    labels: dict[str, str]
    ports: tuple[int, ...] = ()
    root: bool = False


def ray_pod(namespace: str, cluster: str, node_type: str, ports: tuple[int, ...] = ()) -> Place:
    """A pod with the labels that KubeRay gives a RayCluster's."""
    return Place(namespace, {"ray.io/cluster": cluster, "ray.io/node-type": node_type}, ports)


PLACES = {
    "head": ray_pod("net-a", "adhoc", "head", tuple(port for pod, port in PORTS if pod == "head")),
    "worker": ray_pod("net-a", "adhoc", "worker", tuple(port for pod, port in PORTS if pod == "worker")),
    "other-cluster": ray_pod("net-a", "other", "worker"),
    "cleanup": ray_pod("net-a", "adhoc", "redis-cleanup"),
    "submitter": Place("net-a", {"batch.kubernetes.io/job-name": "job"}),
    "tenant-pod": Place("net-a", {"app": "notebook"}),
    "same-name": ray_pod("net-b", "adhoc", "worker"),
    "operator": Place("ray-system", {"app.kubernetes.io/component": "kuberay-operator"}),
    "dashboard": Place("net-dashboard", {}),
    "client": Place("net-client", {}),
    "serve": Place("net-serve", {"app": "serve"}),
    "monitoring": Place("net-monitoring", {}),
    "ingress": Place("net-ingress", {}),
    "redis": Place("net-redis", {}, ports=(6379, 26379)),
    "elsewhere": Place("net-elsewhere", {}, ports=(8000,)),
    "made": Place("net-c", DEPLOYED, ports=(8000, 8001)),
    "unlabelled": Place("net-c", {}, ports=(8000,)),
    "dns": Place("kube-system", {"k8s-app": "kube-dns"}, ports=(53,), root=True),
}

MADE_BY_THE_STACK = {"net-a", "net-b", "net-c"}

THERE = {"ray-system", "kube-system"}


DEPLOYS = "deploys"
"""The RayCluster that runs with the account of `rayDeployer`."""

BENCHMARK = """
import json, pathlib, ssl, sys, time, urllib.error, urllib.request
import ray

@ray.remote(num_cpus=0)
def benchmark(deployment, service, unlabelled):
    folder = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
    headers = {"Authorization": "Bearer " + (folder / "token").read_text(), "Content-Type": "application/json"}
    trusted = ssl.create_default_context(cafile=folder / "ca.crt")
    def ask(method, path, body=None):
        url = "https://kubernetes.default.svc" + path
        data = json.dumps(body).encode() if body else None
        try:
            request = urllib.request.Request(url, data, headers, method=method)
            return urllib.request.urlopen(request, context=trusted).status
        except urllib.error.HTTPError as error:
            return json.load(error)["message"]
    deployments, services = "/apis/apps/v1/namespaces/net-c/deployments", "/api/v1/namespaces/net-c/services"
    answers = [ask("POST", deployments, deployment), ask("POST", services, service)]
    served, end = None, time.monotonic() + 120
    while served is None and time.monotonic() < end:
        try:
            served = urllib.request.urlopen("http://served:8000/", timeout=4).status
        except OSError as error:
            print(error, file=sys.stderr)
            time.sleep(1)
    answers += [served, ask("POST", deployments, unlabelled)]
    return [*answers, ask("DELETE", deployments + "/served"), ask("DELETE", services + "/served")]

ray.init(logging_level="ERROR")
print(json.dumps(ray.get(benchmark.remote(*json.load(sys.stdin)))))
"""
"""What ado's actuator for vLLM does: a task creates a Deployment and a Service, calls it, and deletes both. In between
it tries a Deployment without the label."""


class Pods:
    """The pods of the tests, and their connections."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self.addresses: dict[str, str] = {}
        self._others = sorted({place.namespace for place in PLACES.values()} - MADE_BY_THE_STACK - THERE)

    def create(self) -> None:
        bodies: list[dict[str, Any]] = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in self._others
        ]
        bodies += [pod(name, place) for name, place in PLACES.items()]
        self._platform.kubectl("create", "-f", "-", given=yaml.safe_dump_all(bodies))
        until(self._ready, "all pods are ready")

    def delete(self) -> None:
        existing = sorted({place.namespace for place in PLACES.values()} & (MADE_BY_THE_STACK | THERE))
        for namespace in existing:
            names = [name for name, place in PLACES.items() if place.namespace == namespace]
            self._platform.kubectl("delete", "pod", "-n", namespace, *names, "--ignore-not-found", "--wait=false")
        self._platform.kubectl("delete", "namespace", *self._others, "--ignore-not-found", "--wait=false")

    def connects(self, source: str, addresses: list[tuple[str, int]]) -> list[bool]:
        """Whether a pod reaches each of the addresses."""
        place = PLACES[source]
        command = ["exec", "-n", place.namespace, source, "--", "python", "-c", TRY, json.dumps(addresses)]
        return list(json.loads(self._platform.kubectl(*command)))

    def _ready(self) -> bool:
        for name, place in PLACES.items():
            found = json.loads(self._platform.kubectl("get", "pod", "-n", place.namespace, name, "-o", "json"))
            if not is_ready(found):
                return False
            self.addresses[name] = found["status"]["podIP"]
        return True


def pod(name: str, place: Place) -> dict[str, Any]:
    """A pod that Pod Security `restricted` admits, unless it has to be root."""
    restricted = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], **({"add": ["NET_BIND_SERVICE"]} if place.root else {})},
        **({"runAsUser": 0} if place.root else {"runAsNonRoot": True, "runAsUser": 1000}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": place.namespace, "labels": place.labels},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "python",
                    "image": RAY.reference,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python", "-c", LISTEN, *map(str, place.ports or (1024,))],
                    "securityContext": restricted,
                }
            ],
        },
    }


def deploying() -> dict[str, Any]:
    """A tenant whose code on Ray creates Deployments, with a head."""
    same = {key: value for key, value in pods_cluster().items() if key in ("rayVersion", "image", "head")}
    return {
        "name": "net-c",
        "allowDelete": True,
        "rayDeployer": {"network": {"ports": [8000]}},
        "clusters": [{"name": DEPLOYS, **same, "autoscaling": False}],
    }


@pytest.fixture(scope="module")
def pods(platform: Platform, tmp_path_factory: pytest.TempPathFactory, steps: Steps) -> Iterator[Pods]:
    """The stack's tenants, and pods in their namespaces and in others."""
    stack = PodsStack("network", tmp_path_factory.mktemp("network"), platform.rehearsal, plugins(), FILE)
    node = platform.rehearsal.placement.address

    def open_a_port(settings: dict[str, Any]) -> None:
        settings["tenants"][0]["network"]["egress"] = [{"cidr": f"{node}/32", "ports": [ALLOWED_PORT]}]

    stack.edit(open_a_port)
    stack.edit(lambda settings: settings["tenants"].append(deploying()))
    made = Pods(platform)
    try:
        with steps.step("`pulumi up` of three tenants with policies, one with a RayCluster"):
            stack.up()
        with steps.step(f"{len(PLACES)} pods"):
            made.create()
        yield made
    finally:
        made.delete()
        stack.destroy()


@pytest.fixture(scope="module")
def tried(pods: Pods, steps: Steps) -> dict[str, list[bool]]:
    """For each source, which ports it reaches."""
    targets = [(pods.addresses[pod], port) for pod, port in PORTS]
    with steps.step("try every cell of the port matrix"), ThreadPoolExecutor(4) as executor:
        return dict(zip(SOURCES, executor.map(lambda source: pods.connects(source, targets), SOURCES), strict=True))


@pytest.mark.parametrize("source", SOURCES)
def test_ports_of_a_cluster_are_open_only_to_the_sources_of_the_matrix(
    tried: dict[str, list[bool]], source: str
) -> None:
    _, allowed = SOURCES[source]
    assert {port for port, open_ in zip(PORTS, tried[source], strict=True) if open_} == allowed


@pytest.mark.parametrize("source", REACH)
def test_pods_of_a_tenant_reach_only_the_destinations_of_the_matrix(
    pods: Pods, platform: Platform, source: str
) -> None:
    node = platform.rehearsal.placement.address
    addresses = {
        "dns-pod": (pods.addresses["dns"], 53),
        "dns-node": (DNS, 53),
        "api-server": ("10.96.0.1", 443),
        "redis": (pods.addresses["redis"], 6379),
        "egress": (node, ALLOWED_PORT),
        "same-host": (node, OTHER_PORT),
        "foreign-pod": (pods.addresses["elsewhere"], 8000),
    }
    assert set(addresses) == set(DESTINATIONS)
    reached = dict(zip(addresses, pods.connects(source, list(addresses.values())), strict=True))
    _, allowed = REACH[source]
    assert {place for place, arrived in reached.items() if arrived} == allowed


def http_server(labels: dict[str, str]) -> dict[str, Any]:
    """A Deployment that answers on port 8000."""
    app = {"app": "served"}
    made = pod("served", Place("net-c", {**app, **labels}))
    made["spec"]["containers"][0]["command"] = ["python", "-m", "http.server", "8000"]
    template = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    spec = {"selector": {"matchLabels": app}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "served"}, "spec": spec}


def test_a_task_of_ray_creates_a_deployment_and_calls_its_service(pods: Pods, platform: Platform, steps: Steps) -> None:
    (head,) = platform.pods(f"ray.io/cluster={DEPLOYS}", "net-c")
    inside = ("exec", "-i", "-n", "net-c", head, "-c", "ray-head", "--", "python", "-c")
    service = {"metadata": {"name": "served"}, "spec": {"selector": {"app": "served"}, "ports": [{"port": 8000}]}}
    given = json.dumps([http_server(DEPLOYED), service, http_server({})])
    with steps.step("a task of Ray creates a Deployment, calls it and deletes it"):
        answers = json.loads(platform.kubectl(*inside, BENCHMARK, given=given).splitlines()[-1])
    refused = answers.pop(3)
    assert answers == [201, 201, 200, 200, 200]
    assert "add it to metadata.labels of a pod, or to spec.template.metadata.labels of a Deployment" in refused

    made, unlabelled = pods.addresses["made"], pods.addresses["unlabelled"]
    tried = json.dumps([(made, 8000), (made, 8001), (unlabelled, 8000)])
    assert json.loads(platform.kubectl(*inside, TRY, tried)) == [True, False, False]
    (found,) = platform.pods(f"ray.io/cluster={DEPLOYS}", "net-c").values()
    address = found["status"]["podIP"]
    assert pods.connects("made", [(address, 8000), (address, 8265)]) == [True, False]
    assert pods.connects("unlabelled", [(address, 8000), (made, 8000)]) == [False, False]


def test_pods_that_nothing_restricts_reach_the_proxy_of_a_tenants_metrics_and_not_prometheus(
    pods: Pods, platform: Platform
) -> None:
    """The API server, whose addresses are not known, has to reach the proxy (docs/monitoring.md)."""
    addresses = []
    for labels in (SELECTOR, PROXIES):
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        (found,) = platform.pods(selector, DEFAULT_NAMESPACE).values()
        addresses.append((found["status"]["podIP"], PORT))
    reached = {source: pods.connects(source, addresses) for source in ("elsewhere", "tenant-pod", "head")}
    assert reached == {"elsewhere": [False, True], "tenant-pod": [False, False], "head": [False, False]}


def test_a_cluster_without_network_settings_is_closed(pods: Pods, platform: Platform) -> None:
    head = platform.head()
    assert head is not None
    found = json.loads(platform.kubectl("get", "pod", "-n", NAMESPACE, head, "-o", "json"))
    ports = [(found["status"]["podIP"], port) for port in (6379, 8265, 10001, 8000, 8080)]
    sources = ("dashboard", "monitoring", "same-name", "elsewhere")
    with ThreadPoolExecutor(len(sources)) as executor:
        reached = dict(zip(sources, executor.map(lambda source: pods.connects(source, ports), sources), strict=True))
    assert reached == dict.fromkeys(sources, [False] * len(ports))
    answers = platform.in_head("python", "-c", TRY, json.dumps([("127.0.0.1", 8265), (f"{CLUSTER}-head-svc", 8265)]))
    assert json.loads(answers) == [True, True]
