"""The states of the programs for `make status`, in `<run>/host-pods.json`."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

_FILE = "host-pods.json"


@dataclass
class HostPod:
    """The program of one Deployment."""

    deployment: str
    image: str
    state: str = "Waiting"
    pid: int = 0
    restarts: int = 0
    reason: str = ""
    log: str = ""
    ports: dict[int, int] = field(default_factory=dict)
    """Of loopback, by the ports of the pod that they replace."""


def read_states(run: Path) -> list[HostPod]:
    """The states that host-pods wrote last; empty if it has not run."""
    file = run / _FILE
    entries = json.loads(file.read_text()) if file.is_file() else []
    for entry in entries:
        entry["ports"] = {int(port): here for port, here in entry.get("ports", {}).items()}
    return [HostPod(**entry) for entry in entries]


def write_states(run: Path, pods: Iterable[HostPod]) -> None:
    """Writes them atomically, so that nobody reads half a file."""
    fresh = run / f"{_FILE}.new"
    fresh.write_text(json.dumps([asdict(pod) for pod in pods]))
    fresh.rename(run / _FILE)
