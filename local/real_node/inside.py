"""The first steps inside the box: its mounts and addresses, then its command."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from local.networks import POD_NETWORK
from local.real_node.programs import DNS
from local.supervision import URGENT

SECONDS = 10.0

KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
"""Values that a kubelet writes if it finds others (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables).
These settings are the whole machine's, so in the box files with the values are mounted over them."""


def main() -> None:
    """`python -m local.real_node.inside ADDRESS FOLDER COMMAND...`."""
    address, folder, *command = sys.argv[1:]
    # The first process of a namespace only gets the signals that it handles.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    # Kubelet's mounts must be visible in the containers' namespaces; none of them is propagated to the machine (slave).
    _run("mount", "--make-rshared", "/")
    for private in ("/run", "/var/log"):
        _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", private)
    # A Unix socket's path has to be short, and a checkout's path may be long.
    Path("/run/node").mkdir()
    _run("mount", "--bind", folder, "/run/node")
    for name, value in KERNEL_SETTINGS.items():
        stand_in = Path("/run/kernel") / name
        stand_in.parent.mkdir(parents=True, exist_ok=True)
        stand_in.write_text(f"{value}\n")
        _run("mount", "--bind", str(stand_in), f"/proc/sys/{name}")
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "address", "add", f"{DNS}/32", "dev", "lo")
    deadline = time.monotonic() + SECONDS
    while subprocess.run(["ip", "link", "show", "node0"], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > deadline:
            sys.exit("the virtual cable to the machine did not appear")
        time.sleep(0.02)
    _run("ip", "address", "add", f"{address}/30", "dev", "node0")
    _run("ip", "link", "set", "node0", "up")
    # Drops packets for deleted pods without an answer, like other pod networks (Calico has the same route). When the
    # node answered that they are unreachable, a Sentinel of Redis 7.0 asked again without a pause, for ten seconds of
    # CPU.
    _run("ip", "route", "add", "blackhole", POD_NETWORK)
    for setting in ("ip_forward", "conf/all/route_localnet"):
        (Path("/proc/sys/net/ipv4") / setting).write_text("1")
    _come_first()
    os.execvp(command[0], command)  # noqa: S606 (no shell is needed)


def _come_first() -> None:
    """Lets the node's own programs come before its pods, also where the kernel weighs all processes of a session as
    one, whatever their own priorities (sched(7), "The autogroup feature"). Pods are in cgroups of their own, to which
    this does not apply. Beside the pods of three nodes an API server took more than five seconds for a lease.

    A kernel without the feature has no such file; without the right to raise a priority, `nice` has no effect either.
    """
    with suppress(FileNotFoundError, PermissionError):
        Path("/proc/self/autogroup").write_text(URGENT[-1])


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
