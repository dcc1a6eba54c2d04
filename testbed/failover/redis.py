"""The stack's Redis, as its operator sees it: the current master, and ways to lose it."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from components.redis.connection import SELECTOR
from testbed.failover.day import Loss
from testbed.pods.node import is_ready
from testbed.pods.platform import Platform
from testbed.pods.steps import until

SYSTEM = "ray-system"

WITH_SCRIPTS = ". /etc/redis/scripts/common.sh; "
"""Functions of the scripts in the containers: ask servers as their own user, and look up the master."""

SCRIPT = "/etc/redis/scripts/a-test"
"""The scripts find each other by the name of the first."""

KINDS = ("process", "hang", "force", "drain")
"""How a master is lost: its process is killed, and may restart before a Sentinel notices; it hangs until another is the
master; its pod is force-deleted, so that its successor starts beside it; or it is evicted, as by a drain."""


class Redis:
    """Three nodes with a Sentinel each."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def ask(self, pod: str, command: str) -> str:
        """The answer of a node to its own user; empty if there is none."""
        return self._shell(pod, f'ask 127.0.0.1 6379 "{command}"')

    def master(self, asked: Collection[str] = ()) -> str:
        """The pod of the master, as the Sentinels report it; empty if none answers. `asked`: only these pods."""
        ready = [name for name, pod in self._seen().items() if is_ready(pod) and (not asked or name in asked)]
        masters = (self._shell(pod, "look; echo $MASTER") for pod in ready)
        return next(filter(None, masters), "").partition(".")[0]

    def pods(self) -> dict[str, dict[str, Any]]:
        """Its pods."""
        return self._platform.pods(",".join(f"{key}={value}" for key, value in SELECTOR.items()), SYSTEM)

    def keys(self) -> list[str]:
        """All keys that it holds."""
        return self.ask(self.master(), "KEYS *").split()

    def names(self, pod: str) -> dict[str, str]:
        """The nodes' addresses by their names, as a pod knows them without DNS."""
        lines = (line.split() for line in self._shell(pod, "cat /etc/hosts").splitlines())
        return {name: address for address, name in lines if name != "localhost"}

    def whole(self) -> bool:
        """Whether all three nodes run, and the master has two replicas in sync."""
        pods = self._seen()
        if len(pods) < 3 or not all(map(is_ready, pods.values())):
            return False
        replication = self.ask(self.master(), "INFO replication")
        return "role:master" in replication and replication.count("state=online") == 2

    def lose_master(self, kind: str) -> Loss:
        """Loses the master in one of KINDS, and waits until Redis is whole again."""
        until(self.whole, "Redis is whole")
        old, pod = self.running_master(), self.master()
        at, begin = time.time(), time.monotonic()
        with getattr(self, f"_{kind}")(pod):
            until(lambda: self.running_master() not in ("", old), "another process is the master")
        until(self.whole, "Redis is whole again")
        return Loss(kind, at, time.monotonic() - begin)

    def running_master(self) -> str:
        """The run id of the master's process; empty if there is none."""
        info = dict(line.split(":", 1) for line in self.ask(self.master(), "INFO").splitlines() if ":" in line)
        return info["run_id"] if info.get("role", "").strip() == "master" else ""

    @contextmanager
    def _process(self, pod: str) -> Iterator[None]:
        self.server(pod).kill()
        yield

    @contextmanager
    def _hang(self, pod: str) -> Iterator[None]:
        server = self.server(pod)
        server.suspend()
        try:
            yield
        finally:
            server.resume()

    @contextmanager
    def _force(self, pod: str) -> Iterator[None]:
        self.delete_by_force(pod)
        yield

    @contextmanager
    def _drain(self, pod: str) -> Iterator[None]:
        self._platform.kubectl("delete", "pod", "-n", SYSTEM, pod, "--wait=false")
        yield

    def delete_by_force(self, *pods: str) -> None:
        """Deletes pods at once, whether or not their containers have ended."""
        self._platform.kubectl("delete", "pod", "-n", SYSTEM, *pods, "--grace-period=0", "--force", "--wait=false")

    def server(self, pod: str, server: str = "redis") -> psutil.Process:
        """The process of one of a pod's servers, `redis` or `sentinel`."""
        box = next(each for each in self._platform.rehearsal.supervisor.strays() if _is_the_node(each))
        (watch,) = (process for process in box.children(recursive=True) if _watches(process, pod, server))
        shell = watch.parent()
        assert shell is not None
        # A Sentinel replaces its shell's process.
        return next(each for each in (shell, *shell.children()) if each.name() == "redis-server")

    def _seen(self) -> dict[str, dict[str, Any]]:
        """Its pods, for polling; none while the API server is too busy to answer, for example while a head starts on a
        small machine."""
        try:
            return self.pods()
        except AssertionError:
            return {}

    def _shell(self, pod: str, script: str) -> str:
        """The output of a script in a pod; empty if that pod was lost."""
        command = ["exec", "-n", SYSTEM, pod, "-c", "redis", "--", "sh", "-c", WITH_SCRIPTS + script, SCRIPT]
        try:
            return self._platform.kubectl(*command).strip()
        except AssertionError:
            return ""


def _is_the_node(process: psutil.Process) -> bool:
    """Whether a process is the parent of the node's containers. Others are temporary."""
    try:
        return process.name() == "unshare"
    except psutil.NoSuchProcess:
        return False


def _watches(process: psutil.Process, pod: str, server: str) -> bool:
    """Whether a process is the watcher beside a server in a pod. Redis itself overwrites its environment with its
    title."""
    try:
        beside_it = process.cmdline()[-1:] == [server] and "watch.sh" in "".join(process.cmdline())
        return beside_it and process.environ().get("POD_NAME") == pod
    except psutil.Error:
        return False
