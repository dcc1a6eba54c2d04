"""What is compared: stack files, from a file or a revision of git, and RayClusters, of a stack or of the cluster."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.rollout.settings import UpdatesSettings
from core.stack_file import stack_file
from core.versions import release_of

from .. import render
from ..load import load, settings_of
from ..settings import StackSettings
from .ray_pods import Known

Body = Mapping[str, Any]

LIVE = "live"
"""The word that selects the cluster."""


class NoSuchSourceError(Exception):
    """There is nothing to compare with; the text names what was looked for."""


def stack_before(word: str, file: Path) -> StackSettings | None:
    """The earlier settings: of another file, or of `file` at a revision of git; None if the file does not exist there
    yet.

    Raises NoSuchSourceError, and StackFileError if a file is invalid.
    """
    if Path(word).is_file():
        return load(Path(word))
    _git(file, "rev-parse", "--verify", "--quiet", f"{word}^{{commit}}", missing=_neither(word))
    if not _git(file, "ls-tree", "--name-only", word, file.name):
        return None
    return settings_of(stack_file(f"{word}:{file}", _git(file, "show", f"{word}:./{file.name}")))


def running(stack: StackSettings) -> dict[str, Known]:
    """The live RayClusters in the namespaces of a stack's tenants. Raises NoSuchSourceError if they cannot be read."""
    # Imported here: importing the Kubernetes client takes longer than comparing two files.
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
    """The output of git in the folder of a file. `missing`: the error message if git fails."""
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


def ray_clusters(stack: StackSettings) -> Mapping[str, Body]:
    """All RayClusters of a stack, without values that only an update knows: the prefixes of their keys in Redis."""
    return {name: each.body for (_, name), each in render.ray_clusters(stack).items()}


def updates(stack: StackSettings) -> dict[str, UpdatesSettings]:
    """How edits reach the running pods of each RayCluster."""
    return {
        f"{tenant.namespace_name}/{cluster.name}": cluster.updates
        for tenant in stack.tenants
        for cluster in tenant.clusters
    }
