"""NetworkPolicies on the real node: netfilter asks a program of ours about the first packet of each connection.

The rules are iptables' because the kernel may lack nftables' `queue` statement. They drop all packets while the program
does not run. As Kubernetes requires, packets from the node itself to its pods are always allowed.
"""

from collections.abc import Sequence
from pathlib import Path

from local.supervision import URGENT, Program
from local.tools import NETWORK_POLICIES

NAME = "network-policies"

RULES = "iptables.rules"

QUEUE = 0


def rules(pod_network: str) -> str:
    """The filter table: packets from pods to the node, and forwarded packets from and to pods."""
    new = f"-m conntrack --ctstate NEW -j NFQUEUE --queue-num {QUEUE}"
    return f"*filter\n-A INPUT -s {pod_network} {new}\n-A FORWARD {new}\nCOMMIT\n"


def program(folder: Path, kubeconfig: Path, node: str, pod_network: str) -> Program:
    """The program, whose first step is to write the rules that send packets to it. They are in `folder` as the box sees
    it."""
    command: Sequence[str | Path] = [
        *("/bin/sh", "-c", 'iptables-restore "$0" && exec "$@"', folder / RULES),
        # Each connection's first packet waits for it: on a cluster the kernel decides.
        *URGENT,
        NETWORK_POLICIES.program(NAME),
        f"--kubeconfig={kubeconfig}",
        f"--node={node}",
        f"--pod-network={pod_network}",
        f"--queue={QUEUE}",
    ]
    return Program(NAME, command, {})
