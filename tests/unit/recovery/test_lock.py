"""Which locks are removed."""

import datetime
import getpass
import os
import socket
import subprocess
import sys

import pytest

from stacks.commands.recover.cli import Cli, LockedError, PulumiError, release


class Recorded(Cli):
    """Records the commands that would be run."""

    def output(self, *arguments: str, stdin: str = "") -> str:
        ran.append(arguments)
        return ""


ran: list[tuple[str, ...]] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def locked(pid: int, host: str = "", ago: float = 0) -> PulumiError:
    """As Pulumi reports it (pkg/backend/diy/lock.go)."""
    time = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=ago)
    return PulumiError(
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        "lock file with `pulumi cancel`.\n  file:///state/.pulumi/locks/organization/ray-platform/dev/3f.json: "
        f"created by {getpass.getuser()}@{host or socket.gethostname()} (pid {pid}) at {time:%Y-%m-%dT%H:%M:%SZ}"
    )


def test_the_lock_of_an_ended_process_is_removed_also_if_its_number_is_reused() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    (holder,) = release(Recorded("dev"), locked(ended.pid), elsewhere=False)
    assert holder.pid == ended.pid
    release(Recorded("dev"), locked(os.getpid(), ago=1e7), elsewhere=False)
    assert ran == [("cancel", "--yes")] * 2


def test_the_lock_of_a_running_process_is_kept() -> None:
    with pytest.raises(LockedError, match=f"process {os.getpid()}.* still runs: .*python"):
        release(Recorded("dev"), locked(os.getpid()), elsewhere=True)
    assert ran == []


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (locked(1, host="builder-7"), r"@builder-7 \(process 1\).*another machine.*--cancel"),
        (PulumiError("error: [409] Conflict: Another update is currently in progress."), "add --cancel"),
    ],
    ids=["another machine", "Pulumi Cloud"],
)
def test_a_lock_from_elsewhere_is_kept_unless_requested(error: PulumiError, why: str) -> None:
    with pytest.raises(LockedError, match=why):
        release(Recorded("dev"), error, elsewhere=False)
    assert ran == []
    release(Recorded("dev"), error, elsewhere=True)
    assert ran == [("cancel", "--yes")]


def test_another_error_does_not_change() -> None:
    with pytest.raises(PulumiError, match="no stack named"):
        release(Recorded("dev"), PulumiError("error: no stack named 'dev' found"), elsewhere=True)
