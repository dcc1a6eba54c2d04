"""Progress of a long step: a bar on a terminal, a line per step elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

console = Console(highlight=False)

Report = Callable[[float, str], None]
"""Called with the completed fraction (0 to 1) and the current action."""


@contextmanager
def step(title: str) -> Iterator[Report]:
    """Shows one step while it runs; yields the function that reports its progress.

    A terminal gets a moving bar; a log gets a line when the step begins and one, with its seconds, when it ends.
    """
    begun = time.monotonic()
    if console.is_terminal:
        with _bar() as bar:
            task = bar.add_task(title, total=1.0, detail="")
            yield lambda done, detail: bar.update(task, completed=done, detail=detail)
            bar.update(task, completed=1.0, detail="")
    else:
        console.print(f"{title} ...")
        yield lambda _done, _detail: None
        console.print(f"{title}: {time.monotonic() - begun:.1f} s")


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description:<34}"),
        BarColumn(bar_width=28),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[detail]}", justify="left"),
        console=console,
    )
