"""A local workspace of Cloudera ML with a simulated Ray."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.cml.client import Client
from components.cml.manifests import nodes
from components.cml.reconcile import Applications
from components.cml.settings import CmlSettings
from testbed.cml.runners import Simulated
from testbed.cml.server import HOST, KEY, Faults, Server
from testbed.cml.workspace import App, Limits, Workspace

TOKEN = "token-of-ray-0815"  # noqa: S105 (of a simulated Ray)
QUICK = (0.01, 0.02, 0.05)
TRAINING = {
    "name": "training",
    "project": "one",
    "rayVersion": "2.60.0",
    "numWorkers": 2,
    "resources": {"cpu": 4, "memory": 16, "gpus": 1},
}


class Place:
    """A workspace, and what a stack does in it."""

    def __init__(self, server: Server, ray: Simulated) -> None:
        self.server, self.ray, self.workspace = server, ray, server.workspace
        self.lines: list[str] = []

    def client(self, key: str = KEY) -> Client:
        return Client(f"https://{HOST}", key, str(self.server.ca_file), pause=0.01)

    def values(self, **changes: Any) -> dict[str, Any]:
        """Of `ray-platform:cml`, with one cluster; `changes`: its keys."""
        cluster = {
            **TRAINING,
            "readyTimeout": "20s",
            "drainTimeout": "1s",
            **changes,
        }
        cluster = {key: value for key, value in cluster.items() if value is not None}
        return {"host": f"https://{HOST}", "caFile": str(self.server.ca_file), "clusters": [cluster]}

    def settings(self, **changes: Any) -> CmlSettings:
        return CmlSettings.model_validate(self.values(**changes), by_name=False)

    def file(self, folder: Path, **changes: Any) -> Path:
        """The stack file of the stack dev."""
        file = folder / "Pulumi.dev.yaml"
        file.write_text(yaml.safe_dump({"config": {"ray-platform:cml": self.values(**changes)}}))
        return file

    def inputs(self, stack: str = "dev", **changes: Any) -> dict[str, Any]:
        settings = self.settings(**changes)
        return nodes(settings, settings.clusters[0], stack)

    def applications(self, inputs: dict[str, Any], token: str = TOKEN, *, served: bool = False) -> Applications:
        return Applications(self.client(), inputs, token, served=served)

    def make(self, inputs: dict[str, Any], token: str = TOKEN) -> dict[str, Any]:
        return self.applications(inputs, token).make(self.lines.append, QUICK)

    def clean(self, inputs: dict[str, Any], token: str = TOKEN) -> None:
        self.applications(inputs, token).clean(self.lines.append, QUICK)

    def app(self, member: str) -> App:
        """The only application of a place of the cluster."""
        [found] = [app for app in self.workspace.apps.values() if app.body["name"].endswith(f".{member}")]
        return found

    @property
    def names(self) -> list[str]:
        return sorted(app.body["name"] for app in self.workspace.apps.values())


MakePlace = Callable[..., Place]


@pytest.fixture
def place_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePlace]:
    servers: list[Server] = []

    def make(faults: Faults | None = None, limits: Limits | None = None) -> Place:
        ray = Simulated()
        workspace = Workspace(ray, ("one", "two"), limits or Limits())
        server = Server(workspace, tmp_path, ray.serve, faults)
        servers.append(server.__enter__())
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        return Place(server, ray)

    yield make
    for each in servers:
        each.__exit__()


@pytest.fixture
def place(place_with: MakePlace) -> Place:
    return place_with()
