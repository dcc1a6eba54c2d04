"""The tenants' proxies to a program of a stack's own, as programs of this machine behind a real API server."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes import client

from components.workloads import path_of
from core.body import Body
from local.control_plane import free_ports
from local.host_pods import egress
from local.rehearsal import Rehearsal
from stacks.objects.stack import render
from stacks.settings import StackSettings
from testbed.kubectl import Kubectl
from testbed.pods.steps import until

ACCOUNT = "proxies"
"""The account of their pods: the namespace's own is created a moment later."""

PEOPLE = {"team-a": "alice", "team-b": "bob"}
"""A user of each tenant."""

TENANTS = [{"name": tenant, "users": [f"user:{user}"]} for tenant, user in PEOPLE.items()]

Command = Callable[[Body, str], Sequence[str | Path]]
"""The command of a container that listens on an address of this machine instead of its own."""


@contextmanager
def running(*command: str | Path, log: Path, env: Mapping[str, str] | None = None) -> Iterator[None]:
    """A program, until the end of the block."""
    with log.open("w") as output:
        environment = {**os.environ, **(env or {})}
        with subprocess.Popen(command, stdout=output, stderr=output, env=environment) as process:
            try:
                yield
            finally:
                process.terminate()


def rendered(stack: StackSettings, namespace: str, *kinds: str) -> list[dict[str, Any]]:
    """Objects of a stack in a namespace."""
    listed = render(stack).items()
    return [dict(each.body) for (kind, _), each in listed if kind in kinds and each.namespace == namespace]


def container(workload: Mapping[str, Any]) -> Body:
    """The only container of a workload's pods."""
    [found] = workload["spec"]["template"]["spec"]["containers"]
    return dict(found)


@dataclass
class Proxied:
    """The proxies of a stack in a namespace."""

    stack: StackSettings
    namespace: str
    kubectl: Kubectl
    addresses: dict[str, str] = field(default_factory=dict)
    """Where the proxies listen on this machine, by the names of their Services."""

    def ask(self, user: str, service: str, path: str) -> "subprocess.CompletedProcess[str]":
        """What `kubectl get --raw` of the guides answers a user."""
        return self.kubectl.tries("get", "--raw", f"{self.path(service)}{path}", f"--as={user}")

    def path(self, service: str) -> str:
        """The path of a proxy in the API."""
        return path_of(self.namespace, service)

    def behind(self, name: str, address: str) -> list[dict[str, Any]]:
        """The stack's Service with endpoints, and the pod that these name, which has no node."""
        [service] = [
            each for each in rendered(self.stack, self.namespace, "Service") if each["metadata"]["name"] == name
        ]
        service["spec"] = {"ports": service["spec"]["ports"]}
        metadata = {"name": name, "namespace": self.namespace}
        containers = [{"name": "proxy", "image": "proxy:1"}]
        spec = {"schedulerName": "none", "serviceAccountName": ACCOUNT, "containers": containers}
        target = {"kind": "Pod", **metadata}
        ports = [{"port": each["port"]} for each in service["spec"]["ports"]]
        subset = {"addresses": [{"ip": address, "targetRef": target}], "ports": ports}
        return [
            service,
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
            {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]},
        ]


@contextmanager
def proxied(
    cluster: Rehearsal, stack: StackSettings, namespace: str, command: Command, logs: Path
) -> Iterator[Proxied]:
    """The stack's Services and rights in a namespace that is created, and the programs behind them on this machine.

    The API server's requests to pods arrive at the rehearsal's egress proxy, which leads them to these programs.
    """
    found, ports = Proxied(stack, namespace, Kubectl(cluster)), free_ports()
    found.kubectl.does("create", "namespace", namespace)
    rights = rendered(stack, namespace, "Role", "RoleBinding")
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}}
    found.kubectl.does("create", "-f", "-", bodies=[account, *rights])
    listening: dict[str, int] = {}
    # The rehearsal's own proxy, which knows no pods, would otherwise take its socket back when it starts.
    until(egress.socket(cluster.run).exists, "the rehearsal's proxy listens", 60, 0.1)
    egress.serve(egress.socket(cluster.run), lambda address, _port: listening.get(address))
    core: Any = client.CoreV1Api(cluster.client())
    with ExitStack() as programs:
        for number, deployment in enumerate(rendered(stack, namespace, "Deployment"), 1):
            name, address, port = deployment["metadata"]["name"], f"10.0.0.{number}", next(ports)
            listening[address], found.addresses[name] = port, f"127.0.0.1:{port}"
            program = container(deployment)
            env = {each["name"]: each["value"] for each in program.get("env", ())}
            started = command(program, found.addresses[name])
            programs.enter_context(running(*started, log=logs / f"{name}.log", env=env))
            found.kubectl.does("create", "-f", "-", bodies=found.behind(name, address))
            status = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
            core.patch_namespaced_pod_status(name, namespace, status)
        yield found
