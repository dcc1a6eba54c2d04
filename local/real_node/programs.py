"""Command lines and settings of the node's programs: containerd, kubelet, kube-proxy, CoreDNS, network policies.

The settings are documented by each program; comments explain unusual ones. All run inside the box.
"""

import json
from pathlib import Path
from typing import Any

import yaml

from local import volumes
from local.images import PAUSE
from local.networks import POD_NETWORK
from local.real_node import network_policies
from local.supervision import URGENT, Program
from local.tools import COREDNS, KUBERNETES_NODE

NODE = "real-0"
"""Name of the node."""

DNS = "169.254.20.10"
"""The address of the DNS server for pods: on their node, as with Kubernetes' NodeLocal DNSCache, which has this
address."""

CNI_PLUGINS = Path("/usr/lib/cni")
"""Where the package containernetworking-plugins installs them."""

INSIDE = Path("/run/node")
"""The node's part of the run folder as the box sees it."""

CONTAINERD_SOCKET = "containerd.sock"


def programs(run: Path, address: str, cgroup: str) -> list[Program]:
    """The programs in their start order. Their settings are written to `<run>/node`."""
    folder = run / "node"
    (folder / "cni").mkdir(parents=True, exist_ok=True)
    # Pods only use the cluster's DNS server, not this machine's own resolver.
    (folder / "resolv.conf").write_text("")
    (folder / "cni" / "10-pods.conflist").write_text(json.dumps(_cni()))
    (folder / "containerd.toml").write_text(_containerd())
    (folder / "kubelet.yaml").write_text(yaml.safe_dump(_kubelet(run, address, cgroup)))
    (folder / "kube-proxy.yaml").write_text(yaml.safe_dump(_kube_proxy(run)))
    (folder / "Corefile").write_text(_corefile(run))
    (folder / network_policies.RULES).write_text(network_policies.rules(POD_NETWORK))
    kubelet: list[str | Path] = [
        KUBERNETES_NODE.program("kubelet"),
        f"--config={INSIDE / 'kubelet.yaml'}",
        f"--kubeconfig={run / 'kubeconfigs' / 'kubelet'}",
        f"--root-dir={INSIDE / 'kubelet'}",
        f"--node-ip={address}",
        f"--hostname-override={NODE}",
    ]
    proxy: list[str | Path] = [KUBERNETES_NODE.program("kube-proxy"), f"--config={INSIDE / 'kube-proxy.yaml'}"]
    return [
        Program("containerd", ["containerd", "--config", INSIDE / "containerd.toml"], {}),
        network_policies.program(INSIDE, run / "kubeconfigs" / network_policies.NAME, NODE, POD_NETWORK),
        Program("kubelet", kubelet, {}),
        Program("kube-proxy", proxy, {}),
        volumes.program(run / "kubeconfigs" / volumes.NAME, INSIDE / "volumes"),
        Program("coredns", [*URGENT, COREDNS.program("coredns"), "-conf", INSIDE / "Corefile"], {}),
    ]


def _cni() -> dict[str, Any]:
    # All traffic is routed (ptp) without a bridge, so nothing depends on the kernel's filtering of bridges.
    pods = {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": POD_NETWORK}]]}
    routes = [{"dst": "0.0.0.0/0"}]
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": {**pods, "routes": routes}},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def _containerd() -> str:
    # restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not write a score below its own: every sandbox fails.
    return f"""version = 2
root = "{INSIDE}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "{INSIDE}/{CONTAINERD_SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE.reference}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI_PLUGINS}"
    conf_dir = "{INSIDE}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
"""


def _kubelet(run: Path, address: str, cgroup: str) -> dict[str, Any]:
    keys = run / "pki"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzBindAddress": "127.0.0.1",
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(keys / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys / "kubelet-serving.crt"),
        "tlsPrivateKeyFile": str(keys / "kubelet-serving.key"),
        "containerRuntimeEndpoint": f"unix://{INSIDE}/{CONTAINERD_SOCKET}",
        # containerd 1.x does not report its driver; a kubelet from 1.37 on refuses that (cmd/kubelet/app/server.go,
        # getCgroupDriverFromCRI).
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": False,  # from 1.35 on the default is to refuse cgroup v1, which this machine may have
        "failSwapOn": False,
        "oomScoreAdj": 0,  # a score below that of this machine's own programs may not be allowed
        "makeIPTablesUtilChains": False,
        "clusterDNS": [DNS],
        "clusterDomain": "cluster.local",
        "resolvConf": str(INSIDE / "resolv.conf"),
        "podLogsDir": str(INSIDE / "pod-logs"),
        "imageGCHighThresholdPercent": 100,  # images that were removed could not be pulled again
        "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }


def _kube_proxy(run: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(run / "kubeconfigs" / "kube-proxy")},
        "mode": "nftables",
        "clusterCIDR": POD_NETWORK,
        "hostnameOverride": NODE,
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
