"""Command lines and settings of the nodes' programs: containerd, kubelet, kube-proxy, CoreDNS, network policies.

The settings are documented by each program; comments explain unusual ones. All run inside the box.
"""

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from local import volumes
from local.images import PAUSE
from local.networks import POD_NETWORK
from local.real_node import network_policies
from local.supervision import URGENT, Program
from local.tools import COREDNS, KUBERNETES_NODE

DNS = "169.254.20.10"
"""The address of the DNS server for pods: on their node, as with Kubernetes' NodeLocal DNSCache, which has this
address."""

CNI_PLUGINS = Path("/usr/lib/cni")
"""Where the package containernetworking-plugins installs them."""

INSIDE = Path("/run/node")
"""The nodes' part of the run folder as the box sees it."""


@dataclass(frozen=True)
class Member:
    """One of the nodes of a box. They share its network, and each has a kubelet and a containerd."""

    number: int
    pods: str
    """The addresses of its pods."""

    @property
    def name(self) -> str:
        return f"real-{self.number}"

    @property
    def kubelet(self) -> str:
        """Name of the program, and of its certificate for the API server."""
        return f"kubelet{self._suffix}"

    @property
    def containerd(self) -> str:
        """Name of the program."""
        return f"containerd{self._suffix}"

    @property
    def folder(self) -> str:
        """Its folder below the one of all nodes, which is the first node's."""
        return str(self.number or "")

    @property
    def socket(self) -> str:
        """containerd's socket below the folder of all nodes."""
        return f"{self.folder}/containerd.sock".lstrip("/")

    @property
    def _suffix(self) -> str:
        return f"-{self.number}" if self.number else ""


def members(count: int) -> tuple[Member, ...]:
    """The nodes of a box, each with a part of its pods' network."""
    parts = ipaddress.ip_network(POD_NETWORK).subnets(prefixlen_diff=(count - 1).bit_length())
    return tuple(Member(number, str(part)) for number, part in zip(range(count), parts, strict=False))


def programs(run: Path, address: str, cgroup: str, nodes: Sequence[Member]) -> list[Program]:
    """The programs in their start order. Their settings are written to `<run>/node`."""
    folder = run / "node"
    folder.mkdir(parents=True, exist_ok=True)
    # Pods only use the cluster's DNS server, not this machine's own resolver.
    (folder / "resolv.conf").write_text("")
    (folder / "kube-proxy.yaml").write_text(yaml.safe_dump(_kube_proxy(run, nodes[0])))
    (folder / "Corefile").write_text(_corefile(run))
    (folder / network_policies.RULES).write_text(network_policies.rules(POD_NETWORK))
    for node in nodes:
        own = folder / node.folder
        (own / "cni").mkdir(parents=True, exist_ok=True)
        (own / "cni" / "10-pods.conflist").write_text(json.dumps(_cni(node)))
        (own / "containerd.toml").write_text(_containerd(node))
        (own / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet(run, address, cgroup, node)))
    proxy: list[str | Path] = [KUBERNETES_NODE.program("kube-proxy"), f"--config={INSIDE / 'kube-proxy.yaml'}"]
    config = "containerd.toml"
    return [
        *(Program(each.containerd, ["containerd", "--config", INSIDE / each.folder / config], {}) for each in nodes),
        network_policies.program(INSIDE, run / "kubeconfigs" / network_policies.NAME, nodes[0].name, POD_NETWORK),
        *(Program(each.kubelet, _kubelet_command(run, address, each), {}) for each in nodes),
        Program("kube-proxy", proxy, {}),
        volumes.program(run / "kubeconfigs" / volumes.NAME, INSIDE / "volumes"),
        Program("coredns", [*URGENT, COREDNS.program("coredns"), "-conf", INSIDE / "Corefile"], {}),
    ]


def _kubelet_command(run: Path, address: str, node: Member) -> list[str | Path]:
    folder = INSIDE / node.folder
    return [
        KUBERNETES_NODE.program("kubelet"),
        f"--config={folder / 'kubelet.yaml'}",
        f"--kubeconfig={run / 'kubeconfigs' / node.kubelet}",
        f"--root-dir={folder / 'kubelet'}",
        f"--node-ip={address}",
        f"--hostname-override={node.name}",
    ]


def _cni(node: Member) -> dict[str, Any]:
    # All traffic is routed (ptp) without a bridge, so nothing depends on the kernel's filtering of bridges.
    pods = {"type": "host-local", "dataDir": f"/run/cni/{node.name}", "ranges": [[{"subnet": node.pods}]]}
    routes = [{"dst": "0.0.0.0/0"}]
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": {**pods, "routes": routes}},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _containerd(node: Member) -> str:
    folder = INSIDE / node.folder
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not write a score below its own: every sandbox fails.
    return f"""version = 2
root = "{folder}/containerd"
state = "/run/{node.containerd}"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{INSIDE / node.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE.reference}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def _kubelet(run: Path, address: str, cgroup: str, node: Member) -> dict[str, Any]:
    keys = run / "pki"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "port": 10250 + 10 * node.number,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": 10248 + 10 * node.number,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(keys / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys / "kubelet-serving.crt"),
        "tlsPrivateKeyFile": str(keys / "kubelet-serving.key"),
        "containerRuntimeEndpoint": f"unix://{INSIDE / node.socket}",
        # containerd 1.x does not report its driver; a kubelet from 1.37 on refuses that (cmd/kubelet/app/server.go,
        # getCgroupDriverFromCRI).
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": str(Path(cgroup) / node.folder),
        "failCgroupV1": False,  # from 1.35 on the default is to refuse cgroup v1, which this machine may have
        "failSwapOn": False,
        "oomScoreAdj": 0,  # a score below that of this machine's own programs may not be allowed
        "makeIPTablesUtilChains": False,
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(INSIDE / "resolv.conf"),
        "podLogsDir": str(INSIDE / node.folder / "pod-logs"),
        "imageGCHighThresholdPercent": 100,  # images that were removed could not be pulled again
        "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }


def _kube_proxy(run: Path, node: Member) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(run / "kubeconfigs" / "kube-proxy")},
        "mode": "nftables",
        "clusterCIDR": POD_NETWORK,
        "hostnameOverride": node.name,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "conntrack": {"maxPerCore": 0},  # the machine's own limit stays
    }


def _corefile(run: Path) -> str:
    return f""".:53 {{
  errors
  ready 127.0.0.1:8181
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {run / "kubeconfigs" / "coredns"}
    ttl 5
  }}
  cache 5
}}
"""
