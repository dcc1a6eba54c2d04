"""Command lines of the control plane: etcd, the API server, the controllers and the scheduler, with TLS.

The flags are documented by Kubernetes and etcd; comments explain the differences from a production cluster.
"""

import json
import os
import random
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from core.files import replace_text
from local import tools
from local.networks import SERVICE_NETWORK
from local.pki import Credentials
from local.supervision import Program

CONTEXT = "rehearsal"
"""The context of its kubeconfigs."""


_COLLECTION = {"GOGC": "800", "GOMEMLIMIT": "1536MiB"}
"""Variables of Go's runtime (pkg.go.dev/runtime)."""


@dataclass(frozen=True)
class Ports:
    """Ports of one rehearsal: the API server's on its address, the others on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peer: int
    controller_manager: int
    scheduler: int


def choose_ports(remembered: Path, api: int | None = None) -> Ports:
    """The ports of the last start if they are free, else others. They are saved in the file. `api`: the API
    server's."""
    last = _read_ports(remembered)
    if last and all(_free(port) for port in vars(last).values()):
        return last
    candidates = free_ports()
    ports = Ports(*(next(candidates) for _ in Ports.__dataclass_fields__))
    ports = replace(ports, api=api or ports.api)
    replace_text(remembered, json.dumps(vars(ports)))
    return ports


def _read_ports(file: Path) -> Ports | None:
    """The ports in a file; None if it is missing or has none, for example after a full disk."""
    try:
        return Ports(**json.loads(file.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def free_ports() -> Iterator[int]:
    """Free ports of loopback, in any order. Each is claimed until this process ends, so that no other process gets it
    from here before its server listens.

    They are below the kernel's ephemeral range (32768 up, ip_local_port_range), so that no outgoing connection of the
    machine takes one between the choice and the start.
    """
    # Tests seed the other generator, alike in all of their processes.
    return (port for port in random.SystemRandom().sample(range(20000, 32000), 12000) if _claim(port))


def _claim(port: int) -> bool:
    """Binds to a free port without listening.

    The bind fails if anything else is bound there. SO_REUSEADDR, set after it, lets a server with the same option
    listen, as servers of Go, asyncio, gRPC and Redis do (socket(7): "except when there is an active listening socket").
    """
    claim = socket.socket()
    try:
        claim.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    claim.detach()  # stays bound until this process ends
    return True


def _free(port: int) -> bool:
    """Whether a server could listen there. Connections that have ended do not matter."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def write_kubeconfigs(run: Path, ports: Ports, credentials: Credentials) -> None:
    """A kubeconfig per client of the API server, as `<run>/kubeconfigs/<client>`."""
    folder = run / "kubeconfigs"
    folder.mkdir(exist_ok=True, mode=0o700)
    for client in credentials.all_clients:
        certificate = {
            "client-certificate": str(run / "pki" / f"{client}.crt"),
            "client-key": str(run / "pki" / f"{client}.key"),
        }
        write_kubeconfig(folder / client, run, f"https://{credentials.address}:{ports.api}", certificate)


def write_kubeconfig(file: Path, run: Path, server: str, user: dict[str, str]) -> None:
    """One kubeconfig with a single context."""
    # Nothing is won on loopback, and the API server would compress its schema for each client anew.
    cluster = {"server": server, "certificate-authority": str(run / "pki" / "ca.crt"), "disable-compression": True}
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": user}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT}}],
        "current-context": CONTEXT,
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(body))


def programs(
    run: Path, ports: Ports, address: str, apiserver_flags: Sequence[str], priority: Sequence[str]
) -> list[Program]:
    """The programs in their start order. The API server listens on `address`, with additional flags. `priority` begins
    the command lines."""
    return [
        Program("etcd", [*priority, *_etcd(run, ports)], {}),
        Program(
            "kube-apiserver",
            [*priority, *_apiserver(run, ports, address), *apiserver_flags],
            collection(),
            # It has no data, and would wait up to 20 seconds for clients that have not closed their connections.
            stop_signal="KILL",
        ),
        Program("kube-controller-manager", [*priority, *_controller_manager(run, ports)], {}),
        Program("kube-scheduler", [*priority, *_scheduler(run, ports)], {}),
    ]


def collection() -> dict[str, str]:
    """Variables by which the API server collects garbage at 1.5 GiB, without those that this command's environment
    sets. It reaches that anyway while it gets KubeRay's definitions, four megabytes of schemas. By Go's own rule
    (GOGC=100) it takes half as much CPU again for them."""
    return {name: value for name, value in _COLLECTION.items() if name not in os.environ}


def _etcd(run: Path, ports: Ports) -> list[str | Path]:
    client, peer = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.etcd_peer}"
    certificate, key, authority = run / "pki/etcd.crt", run / "pki/etcd.key", run / "pki/ca.crt"
    return [
        tools.ETCD.program("etcd"),
        f"--data-dir={run / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--client-cert-auth",
        f"--cert-file={certificate}",
        f"--key-file={key}",
        f"--trusted-ca-file={authority}",
        "--peer-client-cert-auth",
        f"--peer-cert-file={certificate}",
        f"--peer-key-file={key}",
        f"--peer-trusted-ca-file={authority}",
        # A rehearsal is recreated, never restored: waiting for the disk at each write is not worth it.
        "--unsafe-no-fsync",
    ]


def _apiserver(run: Path, ports: Ports, address: str) -> list[str | Path]:
    keys = run / "pki"
    return [
        tools.KUBERNETES.program("kube-apiserver"),
        f"--secure-port={ports.api}",
        f"--bind-address={address}",
        f"--etcd-servers=https://127.0.0.1:{ports.etcd}",
        f"--etcd-cafile={keys / 'ca.crt'}",
        f"--etcd-certfile={keys / 'etcd.crt'}",
        f"--etcd-keyfile={keys / 'etcd.key'}",
        f"--tls-cert-file={keys / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={keys / 'kube-apiserver.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-signing-key-file={keys / 'service-account.key'}",
        f"--service-account-key-file={keys / 'service-account.pub'}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--allow-privileged",
        "--profiling=false",
    ]


def _controller_manager(run: Path, ports: Ports) -> list[str | Path]:
    return [
        tools.KUBERNETES.program("kube-controller-manager"),
        f"--kubeconfig={run / 'kubeconfigs/kube-controller-manager'}",
        f"--service-account-private-key-file={run / 'pki/service-account.key'}",
        f"--root-ca-file={run / 'pki/ca.crt'}",
        "--use-service-account-credentials",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        f"--cert-dir={run / 'serving'}",
        f"--flex-volume-plugin-dir={run / 'volume-plugins'}",
        # KubeRay's kinds are new in each rehearsal. Quotas count them at the next sync, by default after 5 minutes.
        "--resource-quota-sync-period=10s",
        "--leader-elect=false",
    ]


def _scheduler(run: Path, ports: Ports) -> list[str | Path]:
    return [
        tools.KUBERNETES.program("kube-scheduler"),
        f"--kubeconfig={run / 'kubeconfigs/kube-scheduler'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.scheduler}",
        f"--cert-dir={run / 'serving'}",
        "--leader-elect=false",
    ]
