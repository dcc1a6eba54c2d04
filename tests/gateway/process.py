"""The gateway as a separate process, as in its container."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
from prometheus_client.parser import text_string_to_metric_families

from components import payloads
from local.control_plane import free_ports
from tests.gateway.nodes import PASSWORD, USER, Nodes
from tests.gateway.waiting import eventually
from tests.gateway.wire import Wire

PAYLOADS = Path(payloads.__file__).parent

PROGRAM = ("-m", "redis_gateway")
"""Arguments of Python there."""


class Gateway:
    """A gateway with settings; `nodes` provides those with the addresses of the nodes.

    `before`: a program with arguments that starts the gateway.
    """

    def __init__(
        self, folder: Path, nodes: Nodes | None = None, before: Sequence[str] = (), **settings: object
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.port, self.http = islice(free_ports(), 2)
        self._log = folder / "log"
        password = folder / "password"
        password.write_text(f"{PASSWORD}\n")
        configured: dict[str, object] = {
            "listen": f"127.0.0.1:{self.port}",
            "http_listen": f"127.0.0.1:{self.http}",
            "sentinels": ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in nodes.sentinels) if nodes else "",
            "redis_username": USER,
            "redis_password_file": password,
            "sentinel_username": USER,
            "sentinel_password_file": password,
            "log_level": "debug",
        }
        if nodes and nodes.certificates:
            configured["tls_ca_file"] = nodes.certificates.ca
        configured |= settings
        self.environment = {f"REDIS_GATEWAY_{name.upper()}": str(value) for name, value in configured.items()}
        with self._log.open("ab") as log:
            command = [*before, sys.executable, *PROGRAM]
            self.process = subprocess.Popen(command, cwd=PAYLOADS, env=os.environ | self.environment, stderr=log)

    def wait_ready(self) -> "Gateway":
        """Waits until it is ready."""
        eventually("the gateway is ready", self._ready)
        return self

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.log_text()
        return self.get("readyz")[0] == 200

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of an HTTP response."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """The value of one of its metrics, without the prefix."""
        for family in text_string_to_metric_families(self.get("metrics")[1]):
            for sample in family.samples:
                if sample.name == f"redis_gateway_{name}" and labels.items() <= sample.labels.items():
                    return float(sample.value)
        raise AssertionError(f"no metric {name} {labels}")

    def lines(self) -> list[Mapping[str, Any]]:
        """Its log, parsed."""
        return [json.loads(line) for line in self._log.read_text().splitlines()]

    def log_text(self) -> str:
        """Its log as text."""
        return self._log.read_text()

    def wire(self, password: str | None = None) -> Wire:
        """A client's connection."""
        return Wire(self.port, password)

    def wait_for_master_other_than(self, port: int) -> None:
        """Waits until it reports another node as the master."""

        def moved() -> bool:
            messages = [line["message"] for line in self.lines() if line["message"].startswith("the master is ")]
            return not messages[-1].endswith(f":{port}")

        eventually(f"the gateway reports another master than {port}", moved)

    def memory(self) -> int:
        """Its resident memory in bytes."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def connections(self) -> int:
        """The number of its connections with clients."""
        found = psutil.Process(self.process.pid).net_connections("tcp")
        return sum(each.laddr.port == self.port and each.status != psutil.CONN_LISTEN for each in found)

    def forget_peak(self) -> None:
        """Begins to measure `peak` (proc(5): clear_refs)."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak(self) -> int:
        """Its largest resident memory in bytes since `forget_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        """Kills it."""
        self.process.kill()
        self.process.wait()
