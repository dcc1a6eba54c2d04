"""The rehearsal's Prometheus: its configuration from the stack, and its program."""

import shutil
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from components.monitoring.manifests import RULES_FILE, rules_file, scrape_file
from components.monitoring.settings import MonitoringSettings
from local.control_plane import free_ports
from local.errors import RehearsalError
from local.monitoring import discovery
from local.supervision import Program
from stacks.objects.monitoring import monitored
from stacks.settings import StackSettings

NAME = "prometheus"

RETENTION = "2d"


def check() -> str:
    """The path of the program.

    Raises:
        RehearsalError: it is not installed; with how to install it.
    """
    if found := shutil.which(NAME):
        return found
    raise RehearsalError(
        "MONITORING=1 needs prometheus on the PATH: install it (on Debian and Ubuntu as root `apt-get install "
        "--no-install-recommends prometheus`, elsewhere from https://prometheus.io/download), or leave MONITORING out"
    )


class Prometheus:
    """The Prometheus of a run folder. `address`: where it listens, and this machine reaches it."""

    def __init__(self, run: Path, address: str, *, simulated: bool) -> None:
        self._run, self._address, self._simulated = run, address, simulated
        self.folder = run / "monitoring"

    @property
    def url(self) -> str:
        """Its URL, once it was configured."""
        return f"http://{self._address}:{self._port.read_text()}"

    @property
    def ready(self) -> bool:
        """Whether it answers."""
        try:
            with urlopen(f"{self.url}/-/ready", timeout=2) as answer:  # noqa: S310 -- its own URL
                return bool(answer.status == HTTPStatus.OK)
        except (URLError, OSError):
            return False

    def configure(self, stack: StackSettings) -> None:
        """Writes its configuration and rules; it reads them when it starts, and after SIGHUP."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._port.is_file():
            self._port.write_text(str(next(free_ports())))
        settings, parts = stack.monitoring or MonitoringSettings(), monitored(stack)
        (self.folder / RULES_FILE).write_text(rules_file(settings, parts))
        self._config.write_text(configuration(scrape_file(settings, parts), self.folder))

    def programs(self) -> list[Program]:
        """What finds its targets, and itself.

        Raises:
            RehearsalError: it is not installed.
        """
        command = [
            check(),
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--storage.tsdb.retention.time={RETENTION}",
            f"--web.listen-address={self._address}:{self._port.read_text()}",
        ]
        targets = discovery.program(self._run, self.folder, simulated=self._simulated)
        return [targets, Program(NAME, command, {})]

    @property
    def _port(self) -> Path:
        return self.folder / "port"

    @property
    def _config(self) -> Path:
        return self.folder / "prometheus.yml"


def configuration(scrape: str, folder: Path) -> str:
    """The configuration with the targets of `scrape`, which are found by files in a folder instead of in Kubernetes.

    Without those that ask for a token of the cluster (Kueue's), which this Prometheus does not have.
    """
    config: dict[str, Any] = yaml.safe_load(scrape)
    jobs = [each for each in config["scrape_configs"] if "authorization" not in each]
    for job in jobs:
        role = job.pop("kubernetes_sd_configs")[0]["role"]
        job["file_sd_configs"] = [{"files": [f"{folder}/{role}.json"], "refresh_interval": "5s"}]
    made = {"global": {"evaluation_interval": "15s"}, "rule_files": [RULES_FILE], "scrape_configs": jobs}
    return yaml.safe_dump(made, sort_keys=False)
