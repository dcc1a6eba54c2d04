"""A real Ray head whose GCS keeps its tables in Redis, through a gateway."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from local.control_plane import free_ports
from tests.gateway.waiting import eventually

START_SECONDS = 240.0
"""A head takes 10 seconds to start on two idle cores."""

TIMED_OUT = "The current node timed out during startup"
"""`ray start` gives its node 30 seconds, and has no setting for it (ray/_private/node.py). Beside other tests a node
has taken longer; KubeRay starts such a head again, too."""

ATTEMPTS = 3

RAY = Path(sys.executable).with_name("ray")


class Head:
    """Runs during a `with` statement. Other Ray processes on this machine are not affected."""

    def __init__(
        self, redis: int, namespace: str, log: Path, password: str | None = None, user: str | None = None
    ) -> None:
        self.port, client, agent = islice(free_ports(), 3)
        # Sockets of Ray are below this folder, and a socket's path has at most 107 characters.
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        self.address = f"127.0.0.1:{self.port}"
        self._log = log
        self._ours: set[psutil.Process] = set()
        self._attempts = 0
        self._command = [
            *(str(RAY), "start", "--head", "--block", "--node-ip-address=127.0.0.1", f"--port={self.port}"),
            *(f"--ray-client-server-port={client}", f"--dashboard-agent-listen-port={agent}"),
            *("--min-worker-port=0", "--max-worker-port=0", "--num-cpus=2", "--include-dashboard=false"),
            *(f"--temp-dir={self._folder.name}", "--disable-usage-stats", "--object-store-memory=80000000"),
        ]
        self._environment = os.environ | {
            "PYTHONUNBUFFERED": "1",
            "RAY_AUTH_MODE": "disabled",  # also where ~/.ray has a token
            "RAY_NUM_REDIS_GET_RETRIES": str(round(START_SECONDS)),  # seconds that `ray start` waits for the GCS
            "RAY_REDIS_ADDRESS": f"127.0.0.1:{redis}",
            "RAY_external_storage_namespace": namespace,
            **({"RAY_REDIS_PASSWORD": password} if password else {}),
        }
        if password:
            self._command.append(f"--redis-password={password}")
        if user:
            self._command.append(f"--redis-username={user}")

    def __enter__(self) -> Self:
        self._begin()
        try:
            eventually("Ray has started", self._started, seconds=START_SECONDS)
        except BaseException:
            self._end()
            raise
        (self.gcs,) = (child for child in self._ours if child.is_running() and child.name() == "gcs_server")
        return self

    def _begin(self) -> None:
        self._attempts += 1
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, env=self._environment, stdout=log, stderr=log)

    def _started(self) -> bool:
        self._look_around()
        ended, log = self._process.poll() is not None, self._log.read_text()
        if ended and TIMED_OUT in log and self._attempts < ATTEMPTS:
            self._kill()
            self._begin()
            return False
        assert not ended, log
        return "Ray runtime started" in log

    def _look_around(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self._ours.update(psutil.Process(self._process.pid).children(recursive=True))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._kill()
        self._folder.cleanup()

    def _kill(self) -> None:
        self._look_around()
        self._process.kill()
        self._process.wait()
        for process in self._ours:
            # Ray's processes end by themselves after others of the same head have ended.
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self._ours, timeout=10)
        self._ours.clear()
