"""The Pulumi CLI, run for one stack."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]


class PulumiError(Exception):
    """A command of Pulumi failed; the text is its output, or reports that Pulumi is missing."""


@dataclass(frozen=True)
class Cli:
    """The `pulumi` on the PATH, for one stack."""

    stack: str

    folder: Path = field(default_factory=Path.cwd)
    """The folder with Pulumi.yaml."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def output(self, *arguments: str, stdin: str = "") -> str:
        """The standard output of a command. Raises PulumiError."""
        done = self._captured(*arguments, stdin=stdin)
        if done.returncode != 0:
            raise PulumiError(f"{done.stderr}{done.stdout}".strip())
        return str(done.stdout)

    def show(self, *arguments: str) -> int:
        """Runs a command on this terminal. Returns its exit code."""
        return self._run(*arguments).returncode

    def deployment(self) -> Json:
        """The state, as `pulumi stack export` writes it. Raises PulumiError."""
        return dict(json.loads(self.output("stack", "export"))["deployment"])

    def set_deployment(self, deployment: Json) -> None:
        """Replaces the state. Raises PulumiError, also if the stack is locked."""
        self.output("stack", "import", stdin=json.dumps({"version": 3, "deployment": deployment}))

    def previewed(self) -> Sequence[Json]:
        """The steps that `pulumi up` would take, in their order. It needs no lock. Raises PulumiError."""
        done = self._captured("preview", "--json")
        try:
            digest = json.loads(done.stdout)
        except ValueError:
            raise PulumiError(f"{done.stderr}{done.stdout}".strip()) from None
        if done.returncode != 0:
            errors = [each["message"] for each in digest.get("diagnostics") or () if each["severity"] == "error"]
            raise PulumiError("".join(errors).strip() or done.stderr.strip())
        return list(digest.get("steps") or ())

    def _captured(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        done = self._run(*arguments, "--non-interactive", input=stdin, capture_output=True)
        if done.returncode != 0 and done.stderr.rstrip().endswith("EOF") and mend(self._backend()):
            return self._run(*arguments, "--non-interactive", input=stdin, capture_output=True)
        return done

    def _run(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        return self._started(*arguments, "--stack", self.stack, **options)

    def _backend(self) -> str:
        """The URL of the state's backend; empty if there is none."""
        done = self._started("whoami", "--json", "--non-interactive", input="", capture_output=True)
        return str(json.loads(done.stdout).get("url", "")) if done.returncode == 0 else ""

    def _started(self, *arguments: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        try:
            return subprocess.run(
                ["pulumi", *arguments], cwd=self.folder, env=dict(self.environment), text=True, check=False, **options
            )
        except FileNotFoundError:
            raise PulumiError(
                "`pulumi` is not on the PATH: install it (https://www.pulumi.com/docs/install/)"
            ) from None


_FOLDERS = ("stacks", "locks")


def mend(url: str) -> bool:
    """Removes attribute files of states and locks that a killed Pulumi left empty. Returns whether there were any.

    Each file has an attribute file beside it, which is truncated before it is written
    (gocloud.dev/blob/fileblob/attrs.go: setAttrs). A file with an empty attribute file cannot be read (`EOF`); a file
    without one can. `url`: of any backend; if it is not a folder, nothing is removed.
    """
    where = urlsplit(url)
    if where.scheme != "file":
        return False
    bookkeeping = Path(where.netloc + where.path).expanduser() / ".pulumi"
    empty = [file for part in _FOLDERS for file in (bookkeeping / part).rglob("*.attrs") if file.stat().st_size == 0]
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)
