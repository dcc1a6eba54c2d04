"""The Pulumi CLI, run for one stack, and the lock of a stack whose state is in a folder or a bucket.

A killed Pulumi leaves the lock behind, and the next command reports it (pkg/backend/diy/lock.go, checkForLock).
"""

import datetime
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from core.engine import STATE_AT_END
from core.foreground import captured, foreground

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
        with _found():
            return foreground(["pulumi", *arguments, "--stack", self.stack], self.folder, self.environment)

    def deployment(self) -> Json:
        """The state, as `pulumi stack export` writes it. Raises PulumiError."""
        return dict(json.loads(self.output("stack", "export"))["deployment"])

    def set_deployment(self, deployment: Json) -> None:
        """Replaces the state. Raises PulumiError, also if the stack is locked."""
        self.output("stack", "import", stdin=json.dumps({"version": 3, "deployment": deployment}))

    def previewed(self) -> Sequence[Json]:
        """The steps that `pulumi up` would take, in their order. It needs no lock. Raises PulumiError."""
        done = replace(self, environment={**self.environment, **STATE_AT_END})._captured("preview", "--json")
        try:
            digest = json.loads(done.stdout)
        except ValueError:
            raise PulumiError(f"{done.stderr}{done.stdout}".strip()) from None
        if done.returncode != 0:
            errors = [each["message"] for each in digest.get("diagnostics") or () if each["severity"] == "error"]
            raise PulumiError("".join(errors).strip() or done.stderr.strip())
        return list(digest.get("steps") or ())

    def _captured(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        done = self._run(*arguments, "--stack", self.stack, stdin=stdin)
        if done.returncode != 0 and done.stderr.rstrip().endswith(_TORN) and mend(self._backend()):
            return self._run(*arguments, "--stack", self.stack, stdin=stdin)
        return done

    def _backend(self) -> str:
        """The URL of the state's backend; empty if there is none."""
        done = self._run("whoami", "--json")
        return str(json.loads(done.stdout).get("url", "")) if done.returncode == 0 else ""

    def _run(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        with _found():
            return captured(["pulumi", *arguments, "--non-interactive"], self.folder, self.environment, stdin)


@contextmanager
def _found() -> Iterator[None]:
    """Raises PulumiError if Pulumi is missing."""
    try:
        yield
    except FileNotFoundError:
        raise PulumiError("`pulumi` is not on the PATH: install it (https://www.pulumi.com/docs/install/)") from None


_TORN = ("EOF", "unexpected end of JSON input")
"""How Pulumi's errors end if it cannot read an attribute file, or a file among the locks."""

_UNFINISHED = ("stacks/**/*.attrs", "locks/**/*.attrs", "locks/**/*.tmp")


def mend(url: str) -> bool:
    """Removes files beside states and locks that a killed Pulumi or a full disk left empty. Returns whether there were
    any.

    Each file has an attribute file beside it, which is truncated before it is written
    (gocloud.dev/blob/fileblob/attrs.go: setAttrs). A file with an empty attribute file cannot be read (`EOF`); a file
    without one can. A lock is written to a temporary file, which Pulumi reads as a lock (pkg/backend/diy/lock.go).
    `url`: of any backend; if it is not a folder, nothing is removed.
    """
    where = urlsplit(url)
    if where.scheme != "file":
        return False
    bookkeeping = Path(where.netloc + where.path).expanduser() / ".pulumi"
    empty = [file for form in _UNFINISHED for file in bookkeeping.glob(form) if file.stat().st_size == 0]
    for file in empty:
        file.unlink(missing_ok=True)
    return bool(empty)


_HOLDER = re.compile(r"created by (?P<user>.+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<time>\S+)")

_CLOUD = "Another update is currently in progress"
"""Part of the answer 409 of Pulumi Cloud, which does not report processes."""

_SECONDS = 2.0
"""A process may appear to start this much later than its lock, because the lock's time is in whole seconds."""


class LockedError(Exception):
    """Another process may still be working on the stack; the text has its holder and what to do."""


@dataclass(frozen=True)
class Holder:
    user: str
    host: str
    pid: int
    time: datetime.datetime

    def process(self) -> psutil.Process | None:
        """The process on this machine, None if it has ended; a new process with the same number does not count."""
        try:
            process = psutil.Process(self.pid)
            began = process.create_time()
        except psutil.NoSuchProcess:
            return None
        ended = process.status() == psutil.STATUS_ZOMBIE or began > self.time.timestamp() + _SECONDS
        return None if ended else process

    def __str__(self) -> str:
        return f"{self.user}@{self.host} (process {self.pid}) since {self.time:%Y-%m-%d %H:%M:%S %z}"


def holders(message: str) -> list[Holder]:
    """The holders in Pulumi's error message; none if it is about something else."""
    return [
        Holder(found["user"], found["host"], int(found["pid"]), datetime.datetime.fromisoformat(found["time"]))
        for found in _HOLDER.finditer(message)
    ]


def release(pulumi: Cli, error: PulumiError, *, elsewhere: bool) -> list[Holder]:
    """Removes the lock that a command's error reports (`pulumi cancel`). Returns its holders.

    `elsewhere`: also removes a lock of another machine, whose processes cannot be checked from here, or of Pulumi
    Cloud, which reports no holders.

    Raises LockedError if a holder runs or may still run, and `error` itself if it reports no lock.
    """
    message = str(error)
    if _CLOUD in message:
        if not elsewhere:
            raise LockedError(f"{message}\nIf that update is not running any more, add --cancel to this command")
        pulumi.output("cancel", "--yes")
        return []
    held = holders(message)
    if not held:
        raise error
    for holder in held:
        if holder.host != socket.gethostname():
            if not elsewhere:
                raise LockedError(
                    f"stack {pulumi.stack!r} is locked by {holder}, another machine. If nothing runs there any more, "
                    "add --cancel to this command"
                )
        elif process := holder.process():
            raise LockedError(
                f"stack {pulumi.stack!r} is locked by {holder}, which still runs: {' '.join(_command(process))}. "
                f"Wait for it, or end it (kill {holder.pid})"
            )
    pulumi.output("cancel", "--yes")
    return held


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline()) or [process.name()]
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return [process.name()]
