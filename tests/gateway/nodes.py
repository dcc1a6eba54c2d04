"""Three Redis nodes and three Sentinels on loopback, as processes that a test kills, stops and starts."""

import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import trustme

from components.redis.pods import DOWN_AFTER
from local.control_plane import free_ports
from tests.gateway.waiting import eventually
from tests.gateway.wire import Wire

MASTER = "mymaster"

PASSWORD = "a-password-of-the-nodes"  # noqa: S105 - of processes that live as long as a test

USER = "gateway"

RIGHTS = (
    "~RAY* ~DUMMY ~redis-gateway:* resetchannels -@all +auth +ping +info +role +wait +eval +get +hget +hmget +hexists"
    " +hgetall +hlen +exists +dbsize +hscan +scan +hset +hsetnx +hdel +incrby +del +unlink +expire"
)
"""What the gateway's user may do on a node: exactly the rights in docs/redis-gateway.md."""

SENTINEL_RIGHTS = "allchannels -@all +auth +ping +subscribe +sentinel|master +sentinel|get-master-addr-by-name"

FAILOVER_TIMEOUT = 5000
"""Milliseconds. A Sentinel starts a second failover only after twice this time."""


def missing() -> list[str]:
    """The required programs that are missing on this machine."""
    return [program for program in ("redis-server", "redis-sentinel") if not shutil.which(program)]


class Certificates:
    """Certificates of the test's own authority; nodes and Sentinels use the same one."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1", "localhost")
        self.ca, self.cert, self.key = folder / "ca.pem", folder / "cert.pem", folder / "key.pem"
        authority.cert_pem.write_to_path(str(self.ca))
        issued.private_key_pem.write_to_path(str(self.key))
        self.cert.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))

    def context(self) -> ssl.SSLContext:
        """For a client."""
        return ssl.create_default_context(cafile=self.ca)


@dataclass
class Node:
    """A Redis or a Sentinel."""

    program: str
    port: int
    folder: Path
    certificates: Certificates | None
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Starts it, or restarts it with its data."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([self.program, "node.conf"], stdout=log, stderr=log, cwd=self.folder)
        eventually(f"{self.program} on {self.port} answers", self._answers)

    def _answers(self) -> bool:
        with self.wire() as wire:
            return bool(wire.ask("PING") == b"PONG")

    def kill(self) -> None:
        """Kills it, like the loss of its machine."""
        if self.process:
            self.process.kill()
            self.process.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stops its process during the context, like a partition or a machine that hangs."""
        assert self.process
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def wire(self) -> Wire:
        """A connection of the administrator."""
        return Wire(self.port, PASSWORD, self.certificates.context() if self.certificates else None)

    def ask(self, *command: str | int) -> Any:
        """The answer to a command of the administrator."""
        with self.wire() as wire:
            return wire.must(*command)

    def has_answered(self, command: str) -> bool:
        """Whether the last command of a client is this one, and all of its answer was sent."""
        clients = self.ask("CLIENT", "LIST").decode().splitlines()
        return any(f" cmd={command} " in each and " omem=0 " in each for each in clients)


class Nodes:
    """A master with two replicas, and three Sentinels of which two have to agree."""

    def __init__(self, folder: Path, certificates: Certificates | None = None) -> None:
        self.certificates = certificates
        ports = list(islice(free_ports(), 6))
        self.redis = [self._node(folder, "redis-server", port, self._redis_conf(port, ports[0])) for port in ports[:3]]
        self.sentinels = [
            self._node(folder, "redis-sentinel", port, self._sentinel_conf(port, ports[0])) for port in ports[3:]
        ]

    def _node(self, folder: Path, program: str, port: int, conf: list[str]) -> Node:
        (folder / str(port)).mkdir(parents=True)
        (folder / str(port) / "node.conf").write_text("\n".join([*self._listen(port), *conf, ""]))
        return Node(program, port, folder / str(port), self.certificates)

    def _listen(self, port: int) -> list[str]:
        common = ["bind 127.0.0.1", f"requirepass {PASSWORD}", "daemonize no"]
        if self.certificates is None:
            return [f"port {port}", *common]
        files = self.certificates
        tls = [f"tls-ca-cert-file {files.ca}", f"tls-cert-file {files.cert}", f"tls-key-file {files.key}"]
        return ["port 0", f"tls-port {port}", "tls-replication yes", "tls-auth-clients no", *tls, *common]

    def _redis_conf(self, port: int, first: int) -> list[str]:
        replica = [f"replicaof 127.0.0.1 {first}"] if port != first else []
        return [
            'save ""',
            "appendonly yes",
            "appendfsync everysec",
            "repl-diskless-sync-delay 0",
            f"masterauth {PASSWORD}",
            f"user {USER} on >{PASSWORD} {RIGHTS}",
            *replica,
        ]

    def _sentinel_conf(self, _port: int, first: int) -> list[str]:
        return [
            f"sentinel monitor {MASTER} 127.0.0.1 {first} 2",
            f"sentinel auth-pass {MASTER} {PASSWORD}",
            f"sentinel sentinel-pass {PASSWORD}",
            f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER}",
            f"sentinel failover-timeout {MASTER} {FAILOVER_TIMEOUT}",
            f"user {USER} on >{PASSWORD} {SENTINEL_RIGHTS}",
        ]

    def start(self) -> None:
        """Starts all, and waits until they know each other."""
        for node in self.redis:
            node.start()
        for sentinel in self.sentinels:
            sentinel.start()
        self.settle()

    def settle(self) -> None:
        """Waits until the master has two replicas and all Sentinels report the same."""
        eventually("the replicas are in sync", self._in_sync)

    def _in_sync(self) -> bool:
        views = [self._view(sentinel) for sentinel in self.sentinels]
        links = [node.ask("ROLE") for node in self.redis if node.port != self.master.port]
        return all(view == (self.master.port, 2, 2, "master") for view in views) and all(
            link[0] == b"slave" and link[2] == self.master.port and link[3] == b"connected" for link in links
        )

    def _view(self, sentinel: Node) -> tuple[int, int, int, str]:
        fields = sentinel.ask("SENTINEL", "MASTER", MASTER)
        report = dict(zip(fields[::2], fields[1::2], strict=True))
        others = int(report[b"num-other-sentinels"])
        return int(report[b"port"]), int(report[b"num-slaves"]), others, report[b"flags"].decode()

    @property
    def master(self) -> Node:
        """The master, as the first Sentinel that answers reports it."""
        for sentinel in self.sentinels:
            try:
                _, port = sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
            except OSError:
                continue
            return next(node for node in self.redis if node.port == int(port))
        raise ConnectionError("no Sentinel answers")

    def master_after(self, old: Node) -> Node:
        """The master after a failover. One Sentinel may report it a second later than others and the gateway."""
        eventually("another node is the master", lambda: self.master is not old)
        return self.master

    def stop(self) -> None:
        """Kills all nodes and Sentinels."""
        for node in (*self.sentinels, *self.redis):
            node.kill()
