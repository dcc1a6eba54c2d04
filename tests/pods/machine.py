"""What of this machine a real node could leave changed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from local.real_node.box import hierarchies
from local.real_node.inside import KERNEL_SETTINGS


def traces() -> set[str]:
    """Interfaces, mounts, network namespaces, cgroups, packet filter, routes and kernel settings, a line for each."""
    return {
        *(f"interface {name}" for name in psutil.net_if_addrs()),
        *(f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines()),
        *(f"network namespace {name}" for name in _network_namespaces()),
        *(f"cgroup {folder}" for hierarchy in hierarchies() for folder in hierarchy.glob("*/")),
        *(f"nftables {line}" for line in _said("nft", "list", "tables")),
        *(f"route {line}" for line in _said("ip", "route", "show", "table", "all")),
        *(f"{name} {(Path('/proc/sys') / name).read_text().strip()}" for name in KERNEL_SETTINGS),
    }


def _network_namespaces() -> Iterator[str]:
    for process in psutil.process_iter():
        try:
            yield str(Path(f"/proc/{process.pid}/ns/net").readlink())
        except OSError:
            continue


def _said(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
