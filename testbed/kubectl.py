"""Actions of an administrator, with kubectl."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from local import tools
from local.rehearsal import Rehearsal


class Kubectl:
    """kubectl with the cluster admin's rights."""

    def __init__(self, cluster: Rehearsal) -> None:
        self._command: list[str | Path] = [tools.KUBERNETES.program("kubectl"), "--kubeconfig", str(cluster.kubeconfig)]

    def tries(self, *arguments: str, bodies: list[dict[str, Any]] | None = None) -> "subprocess.CompletedProcess[str]":
        """Runs a command, with `bodies` on its standard input."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}) if bodies else None
        return subprocess.run(
            [*self._command, *arguments], input=text, capture_output=True, text=True, timeout=600, check=False
        )

    def does(self, *arguments: str, bodies: list[dict[str, Any]] | None = None) -> str:
        """The output of a command that must succeed."""
        done = self.tries(*arguments, bodies=bodies)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def until_established(self) -> None:
        """Waits for all definitions. kubectl fails at one whose conditions the API server has not written yet."""
        command = ("wait", "--for=condition=Established", "--timeout=300s", "crd", "--all")
        while "accessor error" in (done := self.tries(*command)).stderr:
            time.sleep(0.1)
        assert done.returncode == 0, done.stderr

    def creates(self, namespace: str, body: dict[str, Any]) -> str:
        """The API server's refusal of an object; empty if it accepts it. Nothing is created."""
        return self.tries("create", "-n", namespace, "--dry-run=server", "-f", "-", bodies=[body]).stderr
