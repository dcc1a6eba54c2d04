"""The states of the programs for `make status`, in `<run>/host-pods.json`."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
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


def read_states(run: Path) -> list[HostPod]:
    """The states that host-pods wrote last; empty if it has not run."""
    file = run / _FILE
    return [HostPod(**entry) for entry in json.loads(file.read_text())] if file.is_file() else []


def write_states(run: Path, pods: Iterable[HostPod]) -> None:
    """Writes them atomically, so that nobody reads half a file."""
    fresh = run / f"{_FILE}.new"
    fresh.write_text(json.dumps([asdict(pod) for pod in pods]))
    fresh.rename(run / _FILE)
