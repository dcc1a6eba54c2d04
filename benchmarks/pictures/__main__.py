"""Takes the pictures of pages in docs/pictures.

cp benchmarks/pictures/Pulumi.research.yaml . && make up STACK=research    # until only vision/tuning waits, then Ctrl-C
make page STACK=research                                                   # and beside it
.venv/bin/python -m benchmarks.pictures --write

The picture of the tutorial needs no cluster: its page is the plan of the stack file in docs/tutorial.md.

.venv/bin/python -m benchmarks.pictures --tutorial --write
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from playwright.sync_api import Page, ViewportSize

from local import paths
from stacks.commands.page.command import PORT
from testbed.browser import PHONE, browser

FOLDER = paths.ROOT / "docs" / "pictures"

TUTORIAL = paths.ROOT / "docs" / "tutorial.md"

LARGEST = 150_000
"""Bytes of a picture."""

Scheme = Literal["light", "dark"]

PICTURES: dict[str, tuple[Scheme, ViewportSize]] = {
    "page-light": ("light", {"width": 1280, "height": 1000}),
    "page-dark": ("dark", {"width": 1280, "height": 1000}),
    "page-phone": ("light", PHONE),
}
"""Those of a live page: the colours and the size in pixels, by name."""

OF_THE_TUTORIAL: dict[str, tuple[Scheme, ViewportSize]] = {"tutorial-plan": ("light", {"width": 1280, "height": 540})}
"""That of the tutorial's plan: its sentences and its nodes."""


def main(
    url: Annotated[str, typer.Option(help="The live page.")] = f"http://127.0.0.1:{PORT}/",
    tutorial: Annotated[
        bool, typer.Option("--tutorial", help="Take the picture of the tutorial's plan, not those of a live page.")
    ] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write them into docs/pictures, not into this folder.")
    ] = False,
) -> None:
    """Take the pictures of a live page, or that of the tutorial."""
    folder = FOLDER if write else Path()
    if tutorial:
        plan = page_of(stack_file(TUTORIAL.read_text()))
        _take(OF_THE_TUTORIAL, lambda page: page.set_content(plan), folder)
    else:
        _take(PICTURES, lambda page: page.goto(url), folder)


def stack_file(tutorial: str) -> str:
    """The stack file that the tutorial writes."""
    [block] = re.findall(r"```yaml\n(.*?)```", tutorial, re.DOTALL)
    return str(block)


def page_of(content: str) -> str:
    """The page that `ray-platform page lab` writes of a stack file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "Pulumi.lab.yaml")
        file.write_text(content)
        command = [sys.executable, "-m", "stacks", "page", str(file)]
        return subprocess.run(command, cwd=paths.ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def _take(pictures: dict[str, tuple[Scheme, ViewportSize]], show: Callable[[Page], object], folder: Path) -> None:
    with browser() as chromium:
        for name, (scheme, size) in pictures.items():
            page = chromium.new_page(viewport=size, color_scheme=scheme)
            show(page)
            picture = page.screenshot(path=folder / f"{name}.png")
            typer.echo(f"{folder / name}.png: {len(picture)} bytes")
            if len(picture) > LARGEST:
                raise typer.BadParameter(
                    f"{name} has {len(picture)} bytes; at most {LARGEST} belong into the repository"
                )


if __name__ == "__main__":
    typer.run(main)
