"""Tools from the fastest source: the PATH, their projects' releases, and the compiler for the rest."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from local.install import search_path
from local.install.build import build, require_go
from local.install.releases import Releases
from local.progress import console
from local.tools import Tool


class Auto:
    """Takes each program from the first of the three sources that has exactly the pinned version."""

    def __init__(self) -> None:
        self._releases = Releases()

    def check(self, tools: Sequence[Tool]) -> None:
        """Unpublished programs are built. So Go is required, and this fails before anything is downloaded if it is
        missing or too old."""
        if unpublished := [tool for tool in tools if tool.release is None]:
            require_go(unpublished)

    def install(self, tool: Tool, target: Path, position: str) -> None:
        left = dict(tool.programs)
        for program in tool.programs:
            if found := search_path.find(program, tool.version):
                console.print(f"Copying {program} {tool.version} from {found}", soft_wrap=True)
                shutil.copyfile(found, target / "bin" / program)
                (target / "bin" / program).chmod(0o755)
                del left[program]
        for program in self._releases.install(tool, left, target / "bin", position):
            del left[program]
        build(tool, left, target, position)
