"""A node with real pods on this machine: kubelet, containerd and runc in namespaces of their own."""

from local.real_node.node import RealNode
from local.real_node.requirements import unmet

__all__ = ["RealNode", "unmet"]
