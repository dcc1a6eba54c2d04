"""Stack files to compare: as they lie there, as git has them, or the cluster."""

import subprocess
from pathlib import Path

from core.stack_file import stack_file
from core.versions import release_of

from ..load import load, settings_of
from ..settings import StackSettings
from .ray_pods import Known

LIVE = "live"
"""Word for the cluster."""


class NoSuchSourceError(Exception):
    """There is nothing to compare with; the text says what was looked for."""


def stack_before(word: str, file: Path) -> StackSettings | None:
    """What a stack said: in another file, or in `file` at a revision of git; None where it does not have the file yet.

    Raises NoSuchSourceError, and StackFileError where a file is wrong.
    """
    if Path(word).is_file():
        return load(Path(word))
    _git(file, "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}", missing=_neither(word))
    if not _git(file, "ls-tree", "--name-only", word, file.name):
        return None
    return settings_of(stack_file(f"{word}:{file}", _git(file, "show", f"{word}:./{file.name}")))


def running(stack: StackSettings) -> dict[str, Known]:
    """The RayClusters in the namespaces of a stack's tenants. Raises NoSuchSourceError where they cannot be read."""
    # The client of Kubernetes takes longer to import than two files to compare.
    from components.cluster import ClusterUnreachableError

    from .live import live

    context = stack.kubernetes.context
    namespaces = dict.fromkeys(tenant.namespace_name for tenant in stack.tenants)
    try:
        return live(context, namespaces, release_of(stack.operator.version))
    except ClusterUnreachableError as error:
        by = f"context {context!r}" if context else "the current context"
        raise NoSuchSourceError(f"the cluster cannot be read with {by}: {error}") from error


def _neither(word: str) -> str:
    return f"{word!r} is neither a file nor a revision of git here: give one, such as origin/main, or `live`"


def _git(file: Path, *arguments: str, missing: str = "") -> str:
    """What git says in the folder of a file. `missing`: what is wrong where it refuses."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=file.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise NoSuchSourceError(f"git cannot be run to read {arguments[-1]}: {error.strerror}") from error
    if done.returncode:
        raise NoSuchSourceError(missing or f"git cannot read {arguments[-1]}: {done.stderr.strip()}")
    return done.stdout
