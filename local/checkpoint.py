"""The state of a stack in a folder. A copy of it is kept during each command until that command has succeeded.

If a disk is full, Pulumi's file backend replaces both the state and its backup with a truncated state
(pkg/backend/diy/state.go: saveCheckpoint; gocloud.dev/blob: WriteAll).
"""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local.errors import RehearsalError

_COPIES = 3
"""Copies of the state after a command: the state, its backup, and one in `history`."""

_SPARE_BYTES = 1_000_000


class Checkpoint:
    """A stack's state in a folder that is Pulumi's backend."""

    def __init__(self, folder: Path, project: str, stack: str) -> None:
        bookkeeping = folder / ".pulumi"
        self.file = bookkeeping / "stacks" / project / f"{stack}.json"
        self._locks = bookkeeping / "locks" / "organization" / project / stack
        self._kept = folder / f"{stack}.before.json"
        self._guard = folder / f"{stack}.guard"

    @property
    def interrupted(self) -> bool:
        """Whether the last command was killed, or could not write the state."""
        if self._kept.exists() or any(self._locks.glob("*.json")):
            return True
        checkpoint = _parsed(self.file)
        return checkpoint is not None and bool((checkpoint.get("latest") or {}).get("pending_operations"))

    def check_space(self) -> None:
        """Checks that a command has space for its files.

        Raises:
            RehearsalError: the disk is too full.
        """
        size = self.file.stat().st_size if self.file.exists() else 0
        free, needed = shutil.disk_usage(self._guard.parent).free, _COPIES * size + _SPARE_BYTES
        if free < needed:
            raise RehearsalError(
                f"{_megabytes(free)} are free under {self._guard.parent}, and a command of Pulumi may write its state "
                f"of {_megabytes(size)} {_COPIES} times: free at least {_megabytes(needed)}"
            )

    @property
    def salt(self) -> str | None:
        """The salt of the passphrase that encrypts its secrets; None if there is no state yet."""
        latest = (_parsed(self.file) or {}).get("latest") or {}
        state = (latest.get("secrets_providers") or {}).get("state") or {}
        return state.get("salt")

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A context for a command that changes the state. Restores the earlier state if the command leaves it
        unreadable.

        Raises:
            RehearsalError: the disk was too full for the command, or the state cannot be read and there is no copy.
        """
        with self._guard.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Another command keeps a copy already, and Pulumi refuses this one if it changes the state, too.
                yield
                return
            self._keep()
            yield
            self._let_go()

    def _keep(self) -> None:
        if self.file.exists():
            if _parsed(self.file) is None:
                self._put_back()
            _link(self.file, self._kept)

    def _let_go(self) -> None:
        if self.file.exists() and _parsed(self.file) is None:
            self._put_back()
            raise RehearsalError(
                f"the disk under {self.file.parent} is full ({_megabytes(shutil.disk_usage(self.file.parent).free)} "
                "free), so Pulumi could not write its state. The state from before this command is back in place. Free "
                "some space, then run `make up`: it also takes in what this command has made"
            )
        self._kept.unlink(missing_ok=True)

    def _put_back(self) -> None:
        if _parsed(self._kept) is None:
            raise RehearsalError(
                f"the state {self.file} cannot be read, and there is no copy of it from before the last command. Put "
                f"the newest checkpoint that is whole from {self.file.parents[2]}/history in its place, then run "
                "`make up`"
            )
        _link(self._kept, self.file)


def _link(source: Path, target: Path) -> None:
    """Gives a file a second name, replacing the file of that name. This needs no space. Pulumi never writes into an
    existing file, but replaces it."""
    made = target.with_name(f"{target.name}.new")
    made.unlink(missing_ok=True)
    made.hardlink_to(source)
    made.replace(target)
    # If both names are links to the same file, rename(2) does nothing and the first one stays.
    made.unlink(missing_ok=True)


def _parsed(file: Path) -> dict[str, Any] | None:
    """The checkpoint in that file, None if there is none or it is incomplete."""
    try:
        return dict(json.loads(file.read_bytes())["checkpoint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
