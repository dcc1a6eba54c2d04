"""The lock of a stack whose state is in a folder or a bucket: its holder, and whether it may be removed.

A killed Pulumi leaves it behind, and the next command reports it (pkg/backend/diy/lock.go, checkForLock).
"""

import datetime
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from .cli import Cli, PulumiError

_HOLDER = re.compile(r"created by (?P<user>.+)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<time>\S+)")

_CLOUD = "Another update is currently in progress"
"""Part of the answer 409 of Pulumi Cloud, which does not report processes."""

_SECONDS = 2.0
"""A process may appear to start this much later than its lock, because the lock's time is in whole seconds."""


class LockedError(Exception):
    """Another process may still be working on the stack; the text has its holder and what to do."""


@dataclass(frozen=True)
class Holder:
    """The holder in a lock file."""

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
    return list(_holders(message))


def _holders(message: str) -> Iterator[Holder]:
    for found in _HOLDER.finditer(message):
        time = datetime.datetime.fromisoformat(found["time"])
        yield Holder(found["user"], found["host"], int(found["pid"]), time)


def release(pulumi: Cli, error: PulumiError, *, elsewhere: bool) -> list[Holder]:
    """Removes the lock that a command's error reports (`pulumi cancel`). Returns its holders.

    `elsewhere`: also removes a lock of another machine, whose processes cannot be checked from here.

    Raises LockedError if a holder runs or may still run, and `error` itself if it reports no lock.
    """
    message = str(error)
    if _CLOUD in message:
        raise LockedError(
            f"{message}\nIf that update is not running any more, run `pulumi cancel -s {pulumi.stack}`, then this "
            "command again"
        )
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
