"""The lock of a stack whose state lies in a folder or a bucket: who holds it, and whether it may be taken away.

Pulumi leaves it there when it is killed, and shows it to the next command (pkg/backend/diy/lock.go, checkForLock).
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
"""Of the answer 409 of Pulumi Cloud, which knows no processes."""

_SECONDS = 2.0
"""So much later a process may seem to have begun than the lock that it wrote, whose time is in whole seconds."""


class LockedError(Exception):
    """Somebody may still be at work on the stack; the text names who, and what to do."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as its file says."""

    user: str
    host: str
    pid: int
    time: datetime.datetime

    def process(self) -> psutil.Process | None:
        """The process on this machine, None where it has ended; one that has its number by now is another."""
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
    """Those that Pulumi's error names; none where it is about something else."""
    return list(_holders(message))


def _holders(message: str) -> Iterator[Holder]:
    for found in _HOLDER.finditer(message):
        time = datetime.datetime.fromisoformat(found["time"])
        yield Holder(found["user"], found["host"], int(found["pid"]), time)


def release(pulumi: Cli, error: PulumiError, *, elsewhere: bool) -> list[Holder]:
    """Takes away the lock that a command's error is about (`pulumi cancel`). Returns who held it.

    `elsewhere`: also a lock of another machine, whose processes cannot be seen from here.

    Raises LockedError where who holds it still runs or may run, and `error` itself where it is about no lock.
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
