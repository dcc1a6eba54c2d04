"""The traces that a real node could leave on this machine."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from local.real_node.box import Box, hierarchies
from local.real_node.inside import KERNEL_SETTINGS
from local.supervision import MARK

BOX = re.compile(r"\b(?:rp|ray-platform)-([0-9a-f]{8})\b")
"""The id of a box in names on the machine."""


def traces(run: Path) -> set[str]:
    """Interfaces, mounts, network namespaces, cgroups, packet filter, routes and kernel settings, a line for each.

    Traces of other rehearsals than that of the run folder are omitted, because they may change at any time.
    """
    own = Box(run).id
    found = {
        *(f"interface {name}" for name in psutil.net_if_addrs()),
        *(f"mount {line}" for line in Path("/proc/self/mounts").read_text().splitlines()),
        *(f"network namespace {name}" for name in _network_namespaces(run)),
        *(f"cgroup {folder}" for hierarchy in hierarchies() for folder in hierarchy.glob("*/")),
        *(f"nftables {line}" for line in _output("nft", "list", "tables")),
        *(f"route {line}" for line in _output("ip", "route", "show", "table", "all")),
        *(f"{name} {(Path('/proc/sys') / name).read_text().strip()}" for name in KERNEL_SETTINGS),
    }
    return {line for line in found if {own}.issuperset(BOX.findall(line))}


def _network_namespaces(run: Path) -> Iterator[str]:
    machines = Path("/proc/self/ns/net").readlink()
    for process in psutil.process_iter():
        try:
            namespace = Path(f"/proc/{process.pid}/ns/net").readlink()
            if namespace != machines and _rehearsal(process) in (None, str(run)):
                yield str(namespace)
        except (OSError, psutil.NoSuchProcess):
            continue


def _rehearsal(process: psutil.Process) -> str | None:
    """The run folder in the mark of a process or of one of its parents."""
    for each in (process, *process.parents()):
        if mark := each.environ().get(MARK):
            return mark
    return None


def _output(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
