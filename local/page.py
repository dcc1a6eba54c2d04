"""The live page of a stack in the rehearsal."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from local import paths
from local.control_plane import CONTEXT


def serve(kubeconfig: Path, stack_file: Path, arguments: Sequence[str]) -> NoReturn:
    """Becomes `ray-platform page --live` with the rehearsal's kubeconfig, whatever context the stack file has.

    A program of its own, because the client of Kubernetes reads KUBECONFIG once, when it is imported.
    """
    command = [sys.executable, "-m", "stacks", "page", str(stack_file), "--live", "--context", CONTEXT]
    os.chdir(paths.ROOT)
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    os.execve(command[0], [*command, *arguments], environment)  # noqa: S606 -- no shell is needed
