"""A node with real pods on this machine: kubelet, containerd and runc in their own namespaces."""

from local.real_node.node import RealNode
from local.real_node.requirements import unmet

__all__ = ["RealNode", "unmet"]
