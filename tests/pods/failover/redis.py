"""The stack's Redis, as its operator sees it: who is the master, and how it is lost."""

import time
from typing import Any

import psutil

from components.redis.names import NAME, SELECTOR
from tests.pods.failover.day import Loss
from tests.pods.platform import Platform, is_ready
from tests.pods.steps import until

SYSTEM = "ray-system"

ASK = '. /etc/redis/scripts/common.sh; ask "$1" "$2" $3'
"""What the scripts in the containers have to ask a server, as its own user."""

KINDS = ("process", "pod", "drain")
"""How a master is lost: its process is killed, and may be back before a Sentinel notices; its pod is gone without a
word; or it is asked to go, as by a drain."""


class Redis:
    """Three nodes with a Sentinel each."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    def ask(self, command: str, host: str = "127.0.0.1", port: int = 6379, pod: str | None = None) -> str:
        """What a node or a Sentinel answers to its own user."""
        where = ["-n", SYSTEM, pod or f"{NAME}-0", "-c", "redis", "--", "sh", "-c", ASK, "/etc/redis/scripts/any"]
        return self._platform.kubectl("exec", *where, host, str(port), command).strip()

    def master(self) -> str:
        """The pod of the master, as most Sentinels say."""
        said = [self._said_by(pod) for pod in self.pods()]
        named = [name for name in said if name]
        return max(set(named), key=named.count) if named else ""

    def pods(self) -> dict[str, dict[str, Any]]:
        """Its pods."""
        return self._platform.pods(",".join(f"{key}={value}" for key, value in SELECTOR.items()), SYSTEM)

    def keys(self) -> list[str]:
        """All keys that it holds."""
        return self.ask("KEYS *", pod=self.master()).split()

    def whole(self) -> bool:
        """Whether all three nodes are there, and the master has two replicas that keep up."""
        pods = self.pods()
        if len(pods) < 3 or not all(map(is_ready, pods.values())):
            return False
        said = self.ask("INFO replication", pod=self.master())
        return "role:master" in said and said.count("state=online") == 2

    def lose_master(self, kind: str) -> Loss:
        """Loses the master in one of KINDS, and waits until Redis is whole again."""
        until(self.whole, "Redis is whole")
        old = self._running_master()
        at, begin = time.time(), time.monotonic()
        getattr(self, f"_lose_{kind}")(self.master())
        until(lambda: self._running_master() not in ("", old), "another process is the master", 60)
        elected = time.monotonic() - begin
        until(self.whole, "Redis is whole again")
        return Loss(kind, at, elected, time.monotonic() - begin)

    def _running_master(self) -> str:
        """What the master's process calls itself; nothing where there is none."""
        if not (pod := self.master()):
            return ""
        try:
            said = dict(line.split(":", 1) for line in self.ask("INFO", pod=pod).splitlines() if ":" in line)
        except AssertionError:
            return ""  # it is the one that is lost
        return said["run_id"] if said.get("role", "").strip() == "master" else ""

    def _lose_process(self, pod: str) -> None:
        box = next(each for each in self._platform.rehearsal.supervisor.strays() if each.name() == "unshare")
        (watch,) = (process for process in box.children(recursive=True) if _watches(process, pod))
        server = watch.parent()
        assert server is not None
        server.kill()

    def _lose_pod(self, pod: str) -> None:
        self._platform.kubectl("delete", "pod", "-n", SYSTEM, pod, "--grace-period=0", "--force", "--wait=false")

    def _lose_drain(self, pod: str) -> None:
        self._platform.kubectl("delete", "pod", "-n", SYSTEM, pod, "--wait=false")

    def _said_by(self, pod: str) -> str:
        try:
            said = self.ask("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster", port=26379, pod=pod)
        except AssertionError:
            return ""  # it is the one that is lost
        return said.partition(".")[0]


def _watches(process: psutil.Process, pod: str) -> bool:
    """Whether a process is the one beside Redis in a pod. Redis itself writes its title over its environment."""
    try:
        beside_redis = process.cmdline()[-1:] == ["redis"] and "watch.sh" in "".join(process.cmdline())
        return beside_redis and process.environ().get("POD_NAME") == pod
    except psutil.Error:
        return False
