"""NetworkPolicies on the real node: netfilter asks a program of ours about the first packet of each connection.

The rules are iptables' because the kernel may lack nftables' `queue` statement. They let nothing pass while nobody
answers. As Kubernetes wants it, what the node itself sends to its pods is not asked about.
"""

from collections.abc import Sequence
from pathlib import Path

from local.supervision import Program
from local.tools import NETWORK_POLICIES

NAME = "network-policies"

RULES = "iptables.rules"

QUEUE = 0


def rules(pod_network: str) -> str:
    """The filter table: what pods send to the node, and what it passes on from and to them."""
    new = f"-m conntrack --ctstate NEW -j NFQUEUE --queue-num {QUEUE}"
    return f"*filter\n-A INPUT -s {pod_network} {new}\n-A FORWARD {new}\nCOMMIT\n"


def program(folder: Path, kubeconfig: Path, node: str, pod_network: str) -> Program:
    """The program, which begins with the rules that lead packets to it. They are in `folder` as the box sees it."""
    command: Sequence[str | Path] = [
        *("/bin/sh", "-c", 'iptables-restore "$0" && exec "$@"', folder / RULES),
        # Each connection's first packet waits for it: on a cluster the kernel decides.
        *("nice", "-n", "-10"),
        NETWORK_POLICIES.program(NAME),
        f"--kubeconfig={kubeconfig}",
        f"--node={node}",
        f"--pod-network={pod_network}",
        f"--queue={QUEUE}",
    ]
    return Program(NAME, command, {})
