"""A box for the real node: namespaces for network, mounts and processes that end with their first process.

Everything that the node's programs create in there is removed with the box, however it ends: containers, shims, mounts,
interfaces, routes, nftables' rules. Only the node's cgroups and one end of a virtual cable are outside; `clean` removes
them.
"""

import hashlib
import ipaddress
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from local import paths
from local.commands import run
from local.errors import RehearsalError
from local.networks import BOXES_NETWORK

CGROUPS = Path("/sys/fs/cgroup")

CPU_WEIGHTS = {"cpu.shares": 10240, "cpu.weight": 1000}
"""Ten times a process' own, in cgroup v1 and v2. The kernel weighs all pods together against each of the machine's
other processes; with the weight of a single process, Ray's start times out beside a dozen busy ones."""

START_SECONDS = 15.0

CGROUP_SECONDS = 10.0
"""Seconds until the kernel releases the cgroups of killed processes."""


class Box:
    """The box of one run folder."""

    def __init__(self, run_folder: Path) -> None:
        self.id = hashlib.sha256(str(run_folder).encode()).hexdigest()[:8]
        self.folder = run_folder / "node"

    @property
    def outside(self) -> str:
        """This machine's address on the cable."""
        return str(self._subnet[1])

    @property
    def inside(self) -> str:
        """The node's address, of the API server and the kubelet."""
        return str(self._subnet[2])

    @property
    def cable(self) -> str:
        """The end of the cable on this machine."""
        return f"rp-{self.id}"

    @property
    def cgroup(self) -> str:
        """The cgroup of the node's pods, as a path below each hierarchy."""
        return f"/ray-platform-{self.id}"

    def start(
        self, command: Sequence[str | Path], environment: Mapping[str, str], log: Path, cgroups: Sequence[str] = ()
    ) -> None:
        """Runs a command as the first process of a new box. Inside, `folder` is at /run/node. `cgroups`: paths below
        that of the box.

        Raises:
            RehearsalError: the box could not be created; with the output.
        """
        self._refuse_addresses_in_use()
        self.folder.mkdir(exist_ok=True)
        for hierarchy in hierarchies():
            folder = hierarchy / self.cgroup.strip("/")
            folder.mkdir(exist_ok=True)
            for each in cgroups:
                (folder / each).mkdir(exist_ok=True)
            for setting in CPU_WEIGHTS.keys() & {file.name for file in folder.iterdir()}:
                (folder / setting).write_text(f"{CPU_WEIGHTS[setting]}\n")
        inside = [sys.executable, "-m", "local.real_node.inside", self.inside, self.folder, *command]
        namespaces = ["--net", "--mount", "--propagation=slave", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with log.open("w") as output:
            process = subprocess.Popen(
                ["unshare", *namespaces, *inside],
                cwd=paths.ROOT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        first = _first(process, log)
        run("ip", "link", "add", self.cable, "type", "veth", "peer", "name", "node0", "netns", str(first))
        run("ip", "address", "add", f"{self.outside}/30", "dev", self.cable)
        run("ip", "link", "set", self.cable, "up")

    def clean(self) -> None:
        """Removes what a box leaves outside itself. All its processes must have ended."""
        if self.cable in psutil.net_if_addrs():
            run("ip", "link", "delete", self.cable, fails=True)
        deadline = time.monotonic() + CGROUP_SECONDS
        while not all(_removed(hierarchy / self.cgroup.strip("/")) for hierarchy in hierarchies()):
            if time.monotonic() > deadline:
                raise RehearsalError(f"the cgroups {self.cgroup} below {CGROUPS} are still in use")
            time.sleep(0.05)

    @property
    def _subnet(self) -> ipaddress.IPv4Network:
        number = int(self.id, 16) % (BOXES_NETWORK.num_addresses // 4)
        return ipaddress.IPv4Network((int(BOXES_NETWORK.network_address) + 4 * number, 30))

    def _refuse_addresses_in_use(self) -> None:
        for interface, addresses in psutil.net_if_addrs().items():
            if any(address.address == self.outside for address in addresses):
                raise RehearsalError(
                    f"the real node's address {self.outside} is in use by {interface}, of another rehearsal: stop that"
                )


def hierarchies() -> list[Path]:
    """The cgroup hierarchies: the one of cgroup v2, or those of v1's controllers and systemd's."""
    if (CGROUPS / "cgroup.controllers").is_file():
        return [CGROUPS]
    return [folder for folder in CGROUPS.iterdir() if (folder / "cgroup.procs").is_file() and not folder.is_symlink()]


def _removed(top: Path) -> bool:
    """Removes a cgroup with all below it; False if one is in use."""
    try:
        for folder, _, _ in os.walk(top, topdown=False):
            Path(folder).rmdir()
    except OSError:
        return not top.is_dir()
    return True


def _first(process: subprocess.Popen[bytes], log: Path) -> int:
    """The first process inside. It must have entered its network before an end of the cable can be moved there."""
    own = Path("/proc/self/ns/net").readlink()
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for child in psutil.Process(process.pid).children():
            if Path(f"/proc/{child.pid}/ns/net").readlink() != own:
                return int(child.pid)
        time.sleep(0.02)
    raise RehearsalError(f"the namespaces of the real node could not be made:\n{log.read_text()}")
