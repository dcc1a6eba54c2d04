"""The stack's Redis, as its operator sees it: who is the master, and how it is lost."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import psutil

from components.redis.names import SELECTOR
from testbed.failover.day import Loss
from testbed.pods.node import is_ready
from testbed.pods.platform import Platform
from testbed.pods.steps import until

SYSTEM = "ray-system"

WITH_SCRIPTS = ". /etc/redis/scripts/common.sh; "
"""What the scripts in the containers can do: ask servers as their own user, and look who the master is."""

SCRIPT = "/etc/redis/scripts/a-test"
"""The scripts find each other by the name of the first."""

KINDS = ("process", "hang", "force", "drain")
"""How a master is lost: its process is killed, and may be back before a Sentinel notices; it hangs until another is the
master; its pod is deleted by force, so that its successor starts beside it; or it is asked to go, as by a drain."""


class Redis:
    """Three nodes with a Sentinel each."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def ask(self, pod: str, command: str) -> str:
        """What a node answers to its own user; nothing where it does not."""
        return self._shell(pod, f'ask 127.0.0.1 6379 "{command}"')

    def master(self, asked: Collection[str] = ()) -> str:
        """The pod of the master, as the Sentinels say; nothing where none can be asked. `asked`: only these pods."""
        ready = [name for name, pod in self._seen().items() if is_ready(pod) and (not asked or name in asked)]
        said = (self._shell(pod, "look; echo $MASTER") for pod in ready)
        return next(filter(None, said), "").partition(".")[0]

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
        """Whether all three nodes are there, and the master has two replicas that keep up."""
        pods = self._seen()
        if len(pods) < 3 or not all(map(is_ready, pods.values())):
            return False
        said = self.ask(self.master(), "INFO replication")
        return "role:master" in said and said.count("state=online") == 2

    def lose_master(self, kind: str) -> Loss:
        """Loses the master in one of KINDS, and waits until Redis is whole again."""
        until(self.whole, "Redis is whole")
        old, pod = self.running_master(), self.master()
        at, begin = time.time(), time.monotonic()
        with getattr(self, f"_{kind}")(pod):
            until(lambda: self.running_master() not in ("", old), "another process is the master", 60)
        until(self.whole, "Redis is whole again")
        return Loss(kind, at, time.monotonic() - begin)

    def running_master(self) -> str:
        """What the master's process calls itself; nothing where there is none."""
        said = dict(line.split(":", 1) for line in self.ask(self.master(), "INFO").splitlines() if ":" in line)
        return said["run_id"] if said.get("role", "").strip() == "master" else ""

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
        # A Sentinel takes its shell's place.
        return next(each for each in (shell, *shell.children()) if each.name() == "redis-server")

    def _seen(self) -> dict[str, dict[str, Any]]:
        """Its pods, for those who ask again and again; none while the API server has no time to answer, as while a head
        starts on a small machine."""
        try:
            return self.pods()
        except AssertionError:
            return {}

    def _shell(self, pod: str, script: str) -> str:
        """What a script says in a pod; nothing where that is the one that was lost."""
        command = ["exec", "-n", SYSTEM, pod, "-c", "redis", "--", "sh", "-c", WITH_SCRIPTS + script, SCRIPT]
        try:
            return self._platform.kubectl(*command).strip()
        except AssertionError:
            return ""


def _is_the_node(process: psutil.Process) -> bool:
    """Whether a process holds the node's containers. Others come and go."""
    try:
        return process.name() == "unshare"
    except psutil.NoSuchProcess:
        return False


def _watches(process: psutil.Process, pod: str, server: str) -> bool:
    """Whether a process is the one beside a server in a pod. Redis itself writes its title over its environment."""
    try:
        beside_it = process.cmdline()[-1:] == [server] and "watch.sh" in "".join(process.cmdline())
        return beside_it and process.environ().get("POD_NAME") == pod
    except psutil.Error:
        return False
