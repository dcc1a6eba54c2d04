"""A Ray cluster outside of Kubernetes: `ray start` on a machine of its own, which a cable connects with a real node."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from local.commands import run
from local.real_node.box import CPU_WEIGHTS, Box, hierarchies
from local.rehearsal import Rehearsal
from local.supervision import MARK
from testbed.pods.node import in_its_network
from testbed.pods.steps import until
from testbed.ray_python import serve_python

_NODE, ADDRESS = "192.0.2.1", "192.0.2.2"

RAY_START = ["ray", "start", "--head", "--block", "--object-store-memory=100000000", "--num-cpus=1"]
"""The command, without the flags for addresses and GPUs."""

# In a cgroup beside those of pods, because Ray's start times out where its share of the CPUs is that of one process.
_CONNECTED = f"""
echo 0 > "$CGROUP/cgroup.procs"
until ip address add {ADDRESS}/30 dev cable; do sleep 0.05; done 2> /dev/null
ip link set lo up && ip link set cable up && ip route add default via {_NODE}
exec "$@"
"""


@contextmanager
def laboratory(rehearsal: Rehearsal, flags: Sequence[str], variables: Mapping[str, str]) -> Iterator[None]:
    """Runs Ray at ADDRESS, in namespaces that end with the block. It has started before."""
    with tempfile.TemporaryDirectory(prefix="ray-") as folder:  # short, because paths of Ray's sockets are below it
        command = [*RAY_START, f"--node-ip-address={ADDRESS}", f"--dashboard-host={ADDRESS}", f"--temp-dir={folder}"]
        namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        # The rehearsal would end it, too, if these tests were killed.
        environment = {
            "CGROUP": str(_cgroup(rehearsal)),
            "HOME": folder,
            MARK: str(rehearsal.run),
            "PATH": f"{serve_python().parent}:{os.environ['PATH']}",
        }
        with (
            (rehearsal.supervisor.logs / "laboratory.log").open("wb") as log,
            subprocess.Popen(
                ["unshare", *namespaces, "sh", "-c", _CONNECTED, "sh", *command, *flags],
                env={**environment, "RAY_USAGE_STATS_ENABLED": "0", **variables},
                stdout=log,
                stderr=log,
            ) as process,
        ):
            try:
                until(lambda: _network(process.pid) != _network(os.getpid()), "its network is its own", pause=0.05)
                _connect(rehearsal, process.pid)
                until(lambda: b"Ray runtime started" in Path(log.name).read_bytes(), "Ray has started")
                yield
            finally:
                # Not unshare, which would not wait for them: the first process inside ends when all others have.
                for first in psutil.Process(process.pid).children():
                    first.kill()


def _cgroup(rehearsal: Rehearsal) -> Path:
    """A new one beside those of the pods, with which the rehearsal removes it."""
    (pods,) = (
        folder
        for hierarchy in hierarchies()
        if any(((folder := hierarchy / Box(rehearsal.run).cgroup.strip("/")) / name).is_file() for name in CPU_WEIGHTS)
    )
    made = pods / "laboratory"
    made.mkdir()
    return made


def _network(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _connect(rehearsal: Rehearsal, pid: int) -> None:
    """A cable from the machine to the node, which passes packets on to its pods."""
    on_node = [*in_its_network(rehearsal, but=pid), "ip"]
    run(*on_node, "link", "add", "laboratory", "type", "veth", "peer", "name", "cable", "netns", str(pid))
    run(*on_node, "address", "add", f"{_NODE}/30", "dev", "laboratory")
    run(*on_node, "link", "set", "laboratory", "up")
