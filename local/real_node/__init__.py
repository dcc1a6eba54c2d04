"""A node with real pods on this machine: kubelet, containerd and runc in namespaces of their own."""

from local.real_node.node import RealNode

__all__ = ["RealNode"]
