"""Moves of states with the real Pulumi and without a cluster."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from local import paths, tools
from local.plugins import Selection, prepare_home
from local.pulumi import ENGINE, PROJECT

pytestmark = [pytest.mark.engine, pytest.mark.thorough, pytest.mark.timeout(300)]

HIDDEN = "correct horse battery staple"

MARK = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}
"""Pulumi's mark of a secret in a state (sdk/go/common/resource, SecretSig)."""

NAMESPACE = "ray-platform:index:Platform$kubernetes:core/v1:Namespace"


class Backend:
    """States in a folder."""

    def __init__(self, folder: Path, plugins: Selection) -> None:
        self.folder, self.file = folder, folder / "Pulumi.prod.yaml"
        prepare_home(folder / "home", plugins)
        path = os.pathsep.join([str(tools.PULUMI.program("pulumi").parent), os.environ["PATH"]])
        self.environment: Mapping[str, str] = {
            **ENGINE,
            **os.environ,
            "PATH": path,
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder}",
            "PULUMI_CONFIG_PASSPHRASE": "a passphrase",
        }

    def run(self, *command: str | Path, given: str = "", folder: Path = paths.ROOT) -> str:
        done = subprocess.run(
            command, cwd=folder, env=self.environment, input=given, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def edit(self, split: dict[str, int] | None) -> None:
        """Writes the stack file, with Pulumi's own keys."""
        settings = yaml.safe_load(self.file.read_text())
        more = {f"{PROJECT}:split": split} if split else {}
        settings["config"] = {f"{PROJECT}:tenants": [{"name": "blue"}], **more}
        self.file.write_text(yaml.safe_dump(settings))

    def move(self) -> None:
        """`ray-platform move-state prod`."""
        arguments = ("--config-file", self.file, "--backups", self.folder / "backups", "--yes")
        self.run(sys.executable, "-m", "stacks", "move-state", "prod", *arguments)

    def replace(self, stack: str, rows: list[dict[str, Any]]) -> None:
        """Puts these resources into a state."""
        state = self.exported(stack)
        state["deployment"]["resources"] = rows
        self.run("pulumi", "stack", "import", "--stack", stack, given=json.dumps(state))

    def exported(self, stack: str, *arguments: str) -> dict[str, Any]:
        return dict(json.loads(self.run("pulumi", "stack", "export", "--stack", stack, *arguments)))


def names(state: dict[str, Any]) -> list[str]:
    """The names of the resources."""
    return [row["urn"].rpartition("::")[2] for row in state["deployment"]["resources"]]


def urn(types: str, name: str) -> str:
    return f"urn:pulumi:prod::{PROJECT}::{types}::{name}"


def resources() -> list[dict[str, Any]]:
    """A tenant's namespace with a secret, and its dependencies."""
    root, platform = urn("pulumi:pulumi:Stack", f"{PROJECT}-prod"), urn("ray-platform:index:Platform", "platform")
    provider = urn("pulumi:providers:kubernetes", "cluster")
    secret = {**MARK, "plaintext": json.dumps(HIDDEN)}
    return [
        {"urn": root, "custom": False, "type": "pulumi:pulumi:Stack"},
        {"urn": provider, "custom": True, "id": "1", "type": "pulumi:providers:kubernetes", "parent": root},
        {"urn": platform, "custom": False, "type": "ray-platform:index:Platform", "parent": root},
        {
            "urn": urn(NAMESPACE, "platform-namespace-blue"),
            "custom": True,
            "id": "blue",
            "type": "kubernetes:core/v1:Namespace",
            "parent": platform,
            "provider": f"{provider}::1",
            "inputs": {"data": secret},
        },
    ]


@pytest.fixture
def backend(tmp_path: Path, plugins: Selection) -> Backend:
    """With a stack `prod` that has a tenant, and a stack file that gives the tenant to a stack of tenants."""
    made = Backend(tmp_path, plugins)
    (tmp_path / "Pulumi.yaml").write_text(f"name: {PROJECT}\nruntime: python\n")
    made.run("pulumi", "stack", "init", "prod", folder=tmp_path)
    made.replace("prod", resources())
    made.edit({"stacks": 1})
    return made


def test_secrets_move_and_are_never_in_a_file(backend: Backend) -> None:
    backend.move()
    assert names(backend.exported("prod")) == ["ray-platform-prod", "cluster", "platform"]
    moved = backend.exported("prod.tenants-01", "--show-secrets")["deployment"]["resources"][-1]
    assert moved["inputs"]["data"]["plaintext"] == json.dumps(HIDDEN)
    text = [each.read_bytes() for each in backend.folder.rglob("*") if each.is_file()]
    assert not [each for each in text if HIDDEN.encode() in each]
    assert {each.stat().st_mode & 0o777 for each in (backend.folder / "backups").rglob("*.json")} == {0o600}


def test_stacks_with_separate_providers_become_one(backend: Backend) -> None:
    """Pulumi refuses a state in which a resource names a provider that is not in it."""
    backend.move()
    text = json.dumps(backend.exported("prod.tenants-01", "--show-secrets")["deployment"]["resources"])
    other = text.replace('"id": "1"', '"id": "2"').replace("cluster::1", "cluster::2")
    backend.replace("prod.tenants-01", json.loads(other))
    backend.edit(None)
    backend.move()
    state = backend.exported("prod")
    assert names(state) == ["ray-platform-prod", "cluster", "platform", "platform-namespace-blue"]
    assert state["deployment"]["resources"][-1]["provider"].endswith("::cluster::1")
    assert [each["name"] for each in json.loads(backend.run("pulumi", "stack", "ls", "--json"))] == ["prod"]
