"""What is compared: stack files, from a file or a revision of git, and RayClusters, of a stack or of the cluster."""

import subprocess
from collections.abc import Mapping
from os.path import normpath
from pathlib import Path

from components.rollout.settings import UpdatesSettings
from core.body import ReadOnlyBody
from core.problems import Finding, StackFileError
from core.stack_file import UNREADABLE, StackFile, stack_file
from stacks.load import load, settings_of
from stacks.objects import stack as render
from stacks.settings import StackSettings

LIVE = "live"
"""The word that selects the cluster."""


_LINK = "120000"
"""Mode of a symbolic link in git's trees."""


class NoSuchSourceError(Exception):
    """There is nothing to compare with; the text names what was looked for."""


def stack_before(word: str, file: Path) -> StackSettings | None:
    """The earlier settings: of another file, or of `file` at a revision of git; None if the file does not exist there
    yet.

    Raises NoSuchSourceError, and StackFileError if a file is invalid.
    """
    if Path(word).is_file():
        return load(Path(word))
    neither = f"{word!r} is neither a file nor a revision of git here: give one, such as origin/main, or `live`"
    git(file.parent, "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}", missing=neither)
    found = file_at(word, file)
    return settings_of(found) if found else None


def file_at(revision: str, file: Path) -> StackFile | None:
    """A stack file at a revision, merged over its bases there; None if it does not exist there.

    Raises NoSuchSourceError, and StackFileError as `stack_file` does.
    """
    entry = git(file.parent, "ls-tree", revision, file.name)
    if not entry:
        return None
    text = _shown(revision, file, file.name)
    if entry.startswith(_LINK):
        _, text = _base(revision, file, text)
    return stack_file(f"{revision}:{file}", text, lambda path: _base(revision, file, path))


def _shown(revision: str, file: Path, path: str) -> str:
    """What is at a path from the folder of a file at a revision. Raises StackFileError if it is not text."""
    text = git(file.parent, "show", f"{revision}:./{path}")
    if any("\udc80" <= each <= "\udcff" for each in text):
        raise StackFileError([Finding((), None, "is not UTF-8 there", "encoding")], f"{revision}:{file.parent / path}")
    return text


def _base(revision: str, file: Path, path: str) -> tuple[str, str]:
    """The name and the text at a revision of a base, or of what a link leads to."""
    try:
        return f"{revision}:{normpath(file.parent / path)}", _shown(revision, file, path)
    except NoSuchSourceError as error:
        raise StackFileError([Finding((), None, f"cannot be read: {error}", UNREADABLE)]) from error


def git(folder: Path, *arguments: str, missing: str = "") -> str:
    """The output of git in a folder. `missing`: the error message if git fails. Raises NoSuchSourceError."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
    except OSError as error:
        raise NoSuchSourceError(f"git cannot be run to read {arguments[-1]}: {error.strerror}") from error
    if done.returncode:
        raise NoSuchSourceError(missing or f"git cannot read {arguments[-1]}: {done.stderr.strip()}")
    return done.stdout


def ray_clusters(stack: StackSettings) -> Mapping[str, ReadOnlyBody]:
    """All RayClusters of a stack, without values that only an update knows: the prefixes of their keys in Redis."""
    return {name: each.body for (_, name), each in render.ray_clusters(stack).items()}


def updates(stack: StackSettings) -> dict[str, UpdatesSettings]:
    """How edits reach the running pods of each RayCluster."""
    return {
        f"{tenant.namespace_name}/{cluster.name}": cluster.updates
        for tenant in stack.tenants
        for cluster in tenant.clusters
    }
