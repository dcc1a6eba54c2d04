"""The rehearsals of this checkout: that of `make up`, and those of `make rehearse` that were kept or killed."""

from pathlib import Path

from local import paths
from local.progress import console, step
from local.rehearsal import Rehearsal


def stop(clean: bool) -> None:
    """Stops the rehearsal of `make up`; with `clean`, removes all of the checkout with their data.

    Raises:
        RehearsalError: another command is changing one of them.
    """
    folders = [folder for folder in (paths.RUN, *_of_stacks()) if folder.is_dir() and (clean or folder == paths.RUN)]
    for folder in folders:
        rehearsal = Rehearsal(folder)
        with rehearsal.exclusively(), step(f"Stopping the cluster in {folder.name}"):
            rehearsal.stop(clean)
    if not folders:
        console.print("Nothing to stop: there is no rehearsal in this checkout.")
    show_others()


def show_others() -> None:
    """Names the rehearsals of `make rehearse` that run."""
    if running := [folder.name for folder in _of_stacks() if Rehearsal(folder).states()]:
        console.print(
            f"Of `make rehearse` there runs: {', '.join(running)}. "
            "`make rehearse STACK=... ARGS=--end` stops one, `make down CLEAN=1` all",
            soft_wrap=True,
        )


def _of_stacks() -> list[Path]:
    return sorted(folder for folder in paths.RUN.parent.glob(f"{paths.RUN.name}-*") if folder.is_dir())
