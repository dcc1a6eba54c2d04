"""Requirements of the real node on the machine."""

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from local.real_node.box import CGROUPS, hierarchies
from local.real_node.programs import CNI_PLUGINS

PACKAGES = {
    "containerd": ("containerd", "ctr"),
    "runc": ("runc",),
    "containernetworking-plugins": (str(CNI_PLUGINS / "ptp"), str(CNI_PLUGINS / "portmap")),
    "nftables": ("nft",),
    "iptables": ("iptables-restore",),
    "conntrack": ("conntrack",),
    "iproute2": ("ip",),
    "mmdebstrap": ("mmdebstrap",),
    "util-linux": ("unshare",),
}
"""Debian's packages and their required programs."""

CONTROLLERS = ("cpu", "memory", "pids")
"""The cgroup controllers without which a kubelet does not start."""


def unmet() -> list[str]:
    """The unmet requirements, each with its fix; empty if the real node can run."""
    if platform.system() != "Linux":
        return [f"it runs on Linux, and this is {platform.system()}"]
    return [*_rights(), *_programs()]


def _rights() -> Iterator[str]:
    if os.geteuid() != 0:
        yield "it needs root, for namespaces, mounts and cgroups: run the command as root"
        return
    missing = sorted(set(CONTROLLERS) - _controllers())
    if missing:
        yield f"the kernel has no cgroup controller {', '.join(missing)} at {CGROUPS}: mount it there"
    elif not all(os.access(hierarchy, os.W_OK) for hierarchy in hierarchies()):
        yield f"{CGROUPS} cannot be written to: in a container, start that one with `--privileged`"


def _controllers() -> set[str]:
    second = CGROUPS / "cgroup.controllers"
    if second.is_file():
        return set(second.read_text().split())
    return {name for folder in CGROUPS.glob("*/") for name in folder.name.split(",")}


def absent() -> dict[str, list[str]]:
    """The required packages, each with its missing programs.

    Checks programs, not packages, because other distributors have them, too, in packages that exclude Debian's.
    """
    found = {
        package: [Path(program).name for program in programs if shutil.which(program) is None]
        for package, programs in PACKAGES.items()
    }
    return {package: missing for package, missing in found.items() if missing}


def _programs() -> Iterator[str]:
    if packages := absent():
        programs = ", ".join(program for missing in packages.values() for program in missing)
        install = f"apt-get install --no-install-recommends {' '.join(packages)}"
        yield f"programs are missing ({programs}): on Debian and Ubuntu `{install}`"
