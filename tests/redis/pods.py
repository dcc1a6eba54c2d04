"""The pods of a Redis as processes: the commands, environment and files of the manifests, on loopback addresses.

This replaces the kubelet and the cluster's DNS: a container is a process group, a Secret a folder, and a node's name is
its address.
"""

import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from components.redis.connection import NODES_USER, REDIS_PORT, SENTINEL_PORT
from components.redis.manifests import users_files
from components.redis.pods import DOWN_AFTER, STOP_SECONDS, scripts, template
from components.redis.settings import RedisSettings
from components.tls.issuing import new_certificate
from tests.gateway.waiting import eventually
from tests.gateway.wire import Wire

PASSWORDS: dict[str, list[str]] = {NODES_USER: ["nodes-1"], "a": ["a-1"], "a-b": ["b-1"]}
"""Passwords of the nodes' user and of two tenants; the name of one tenant begins with that of the other."""


_CHANCE = random.SystemRandom()
"""pytest-randomly seeds the other generator alike in all processes."""


def free_addresses(count: int) -> list[str]:
    """Loopback addresses on which Redis' ports are free."""
    while True:
        network = f"127.{_CHANCE.randrange(1, 255)}.{_CHANCE.randrange(1, 255)}"
        found = [f"{network}.{index + 1}" for index in range(count)]
        try:
            for address in found:
                for port in (REDIS_PORT, SENTINEL_PORT):
                    socket.create_server((address, port)).close()
        except OSError:
            continue
        return found


class Pod:
    """A pod of the StatefulSet, with its volume."""

    tls: ssl.SSLContext | None = None
    """The TLS context of clients."""

    def __init__(self, folder: Path, address: str, containers: Sequence[Mapping[str, Any]], nodes: str) -> None:
        self.address, self.data, self._folder, self._containers = address, folder / "data", folder, containers
        self._nodes = nodes
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._restarted: set[str] = set()
        self.data.mkdir(parents=True)

    def start(self) -> None:
        """Starts its containers."""
        for container in self._containers:
            self.start_container(container["name"])

    def start_container(self, name: str) -> None:
        """Starts a container, or restarts it with the content of its emptyDir, as a kubelet does."""
        container = self._container(name)
        self._run_folder(name).mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._here(container["command"]),
                env=self._environment(container),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_ended(self, name: str) -> bool:
        """Restarts a container that has ended by itself. Returns whether it ever has."""
        if (process := self._processes[name]).poll() is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # in a container all processes end with the first
            self.start_container(name)
            self._restarted.add(name)
        return name in self._restarted

    def run(self, container: Mapping[str, Any], **env: str) -> "subprocess.CompletedProcess[str]":
        """Runs a Job's container to its end."""
        self._run_folder(container["name"]).mkdir(parents=True, exist_ok=True)
        environment = {**self._environment(container), **env}
        return subprocess.run(
            self._here(container["command"]), env=environment, check=False, capture_output=True, text=True
        )

    def kill(self, name: str) -> None:
        """Ends a container with all of its processes."""
        process = self._processes.pop(name, None)
        if process:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def delete(self) -> None:
        """Ends the pod at once, as with its node. The content of its emptyDirs is lost; its volume stays."""
        for container in self._containers:
            self.kill(container["name"])
            shutil.rmtree(self._run_folder(container["name"]), ignore_errors=True)

    def lose_data(self) -> None:
        """Empties its volume. Processes in the pod may be writing to it."""
        lost = self.data.rename(self.data.with_name("lost"))
        self.data.mkdir()
        shutil.rmtree(lost)

    def probe(self, name: str, probe: str = "readinessProbe") -> bool:
        """The result of a probe of the kubelet."""
        return self._run(name, self._container(name)[probe]["exec"]["command"]) == 0

    def terminate(self, grace: float = STOP_SECONDS) -> None:
        """Ends the pod as a kubelet does: containers get SIGTERM, and after `grace` seconds SIGKILL.

        A pod that is deleted by force has two (kubelet, pkg/kubelet/kuberuntime: minimumGracePeriodInSeconds).
        """
        for process in self._processes.values():
            process.terminate()
        end = time.monotonic() + grace
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(end - time.monotonic(), 0))
        self.delete()

    def wire(self, user: str = NODES_USER, password: str = "nodes-1", port: int = REDIS_PORT) -> Wire:  # noqa: S107 (of a test)
        """A connection to one of its servers."""
        wire = Wire(port, host=self.address, tls=self.tls)
        wire.must("AUTH", user, password)
        return wire

    def ask(self, *command: str | int, port: int = REDIS_PORT, password: str = "nodes-1") -> Any:  # noqa: S107 (of a test)
        """The answer to a command of the nodes' user."""
        with self.wire(password=password, port=port) as wire:
            return wire.must(*command)

    def master_address(self) -> str:
        """The master that its Sentinel reports."""
        host, _ = self.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster", port=SENTINEL_PORT)
        return str(host, "ascii")

    def down_after(self) -> int:
        """Milliseconds after which its Sentinel considers a silent master lost."""
        fields = self.ask("SENTINEL", "MASTER", "mymaster", port=SENTINEL_PORT)
        return int(dict(zip(fields[::2], fields[1::2], strict=True))[b"down-after-milliseconds"])

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def _run(self, name: str, command: Sequence[str]) -> int:
        container = self._container(name)
        environment = self._environment(container)
        return subprocess.run(self._here(command), env=environment, check=False, capture_output=True).returncode

    def _container(self, name: str) -> Mapping[str, Any]:
        return next(each for each in self._containers if each["name"] == name)

    def _here(self, command: Sequence[str]) -> list[str]:
        scripts = self._folder.parent / "scripts"
        return [str(scripts / Path(each).name) if each.startswith("/etc/redis/scripts/") else each for each in command]

    def _run_folder(self, name: str) -> Path:
        return self._folder / f"{name}-run"

    def _environment(self, container: Mapping[str, Any]) -> dict[str, str]:
        configured = {each["name"]: each.get("value", "") for each in container["env"]}
        here = {
            "ME": self.address,
            "LISTEN": self.address,
            "NODES": self._nodes,
            "USERS": str(self._folder.parent / "users"),
            "DATA": str(self.data),
            "RUN": str(self._run_folder(container["name"])),
            "BACKUP": str(self._folder.parent / "backup"),
            "HOSTS": str(self._folder / "hosts"),
            **({"TLS": str(self._folder.parent / "tls")} if configured["TLS"] else {}),
            # Shorter than in a cluster, so that tests are faster.
            "WATCH_SECONDS": "0.5",
            "DOWN_AFTER_AT_START": "10000",
        }
        return {"PATH": os.environ["PATH"], **configured, **here}


class Pods:
    """All pods of a Redis."""

    def __init__(self, folder: Path, settings: RedisSettings | None = None) -> None:
        settings = settings or RedisSettings()
        containers = template(settings, "ray-system", clusters=1, priority_class=None)["spec"]["containers"]
        addresses = free_addresses(settings.nodes)
        self._folder = folder
        for each in ("scripts", "backup", "tls"):
            (folder / each).mkdir(parents=True)
        for name, text in scripts().items():
            (folder / "scripts" / name).write_text(text)
        self.set_users(PASSWORDS)
        self.pods = [
            Pod(folder / f"ray-redis-{index}", address, containers, " ".join(addresses))
            for index, address in enumerate(addresses)
        ]
        if settings.tls:
            self.certify(*new_certificate("ray-redis", ["ray-redis-0"])[:3])

    def set_users(self, passwords: Mapping[str, Sequence[str]]) -> None:
        """Changes the Secret and atomically its files, as a kubelet does."""
        new = self._folder / f"users-{_CHANCE.getrandbits(32)}"
        new.mkdir()
        for name, text in users_files(passwords).items():
            (new / name).write_text(text)
        link = self._folder / "users.new"
        link.symlink_to(new.name)
        link.rename(self._folder / "users")

    def certify(self, authority: str, certificate: str, key: str) -> None:
        """Changes the Secret with the certificate. All PEM. Clients do not check names here, because they connect
        to addresses."""
        for name, text in (("ca.crt", authority), ("tls.crt", certificate), ("tls.key", key)):
            (self._folder / "tls" / name).write_text(text)
        for pod in self.pods:
            pod.tls = ssl.create_default_context(cadata=authority)
            pod.tls.check_hostname = False

    def start(self) -> None:
        """Starts all, and waits until they are ready."""
        for pod in self.pods:
            pod.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Waits until all Sentinels report one master and all other nodes are in sync."""
        eventually("all are ready", self._ready)

    def _ready(self) -> bool:
        roles = {pod: pod.ask("ROLE") for pod in self.pods}
        masters = [pod for pod, role in roles.items() if role[0] == b"master"]
        return (
            len(masters) == 1
            and len(roles[masters[0]][2]) == len(self.pods) - 1
            and {pod.master_address() for pod in self.pods} == {masters[0].address}
            and all(pod.probe("redis") and pod.down_after() == DOWN_AFTER for pod in self.pods)
        )

    @property
    def master(self) -> Pod:
        """The master that the Sentinels report."""
        for pod in self.pods:
            try:
                address = pod.master_address()
            except OSError:
                continue
            return next(each for each in self.pods if each.address == address)
        raise ConnectionError("no Sentinel answers")

    def wait_for_master_other_than(self, pod: Pod) -> Pod:
        """Waits until another pod is the master, and reports so itself."""

        def moved() -> Pod | None:
            master = self.master
            return master if master is not pod and master.ask("ROLE")[0] == b"master" else None

        found = eventually(f"a node other than {pod.address} is the master", moved)
        assert found
        return found

    def stop(self) -> None:
        """Ends all pods."""
        for pod in self.pods:
            pod.delete()
