"""NetworkPolicies on the real node: netfilter asks a program of ours about the first packet of each connection.

The rules are iptables' because the kernel may lack nftables' `queue` statement. They do not let packets pass while
nobody answers. As Kubernetes wants it, what the node itself sends to its pods is not asked about.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from local.supervision import Program
from local.tools import NETWORK_POLICIES

NAME = "network-policies"

QUEUE = 0

NEW = f"-m conntrack --ctstate NEW -j NFQUEUE --queue-num {QUEUE}"


def program(kubeconfig: Path, node: str, pod_network: str) -> Program:
    """The program, with the rules that lead packets of `pod_network` to it."""
    command: Sequence[str | Path] = [
        *(sys.executable, "-m", __name__, pod_network),
        NETWORK_POLICIES.program(NAME),
        f"--kubeconfig={kubeconfig}",
        f"--node={node}",
        f"--pod-network={pod_network}",
        f"--queue={QUEUE}",
    ]
    return Program(NAME, command, {})


def rules(pod_network: str) -> str:
    """The filter table: from pods to the node, and whatever it passes on from and to them."""
    return f"*filter\n-A INPUT -s {pod_network} {NEW}\n-A FORWARD {NEW}\nCOMMIT\n"


def main() -> None:
    """`python -m local.real_node.network_policies POD_NETWORK COMMAND...`, inside the box."""
    pod_network, *command = sys.argv[1:]
    subprocess.run(["iptables-restore"], input=rules(pod_network), text=True, check=True)
    os.execv(command[0], command)  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    main()
