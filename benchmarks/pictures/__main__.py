"""Takes the pictures of a live page in docs/pictures.

cp benchmarks/pictures/Pulumi.research.yaml . && make up STACK=research    # until only vision/tuning waits, then Ctrl-C
make page STACK=research                                                   # and beside it
.venv/bin/python -m benchmarks.pictures --write
"""

from pathlib import Path
from typing import Annotated, Literal

import typer
from playwright.sync_api import ViewportSize

from local import paths
from stacks.page.command import PORT
from testbed.browser import PHONE, browser

FOLDER = paths.ROOT / "docs" / "pictures"

LARGEST = 150_000
"""Bytes of a picture."""

Scheme = Literal["light", "dark"]

PICTURES: dict[str, tuple[Scheme, ViewportSize]] = {
    "page-light": ("light", {"width": 1280, "height": 1000}),
    "page-dark": ("dark", {"width": 1280, "height": 1000}),
    "page-phone": ("light", PHONE),
}
"""The colours and the size in pixels, by name."""


def main(
    url: Annotated[str, typer.Option(help="The live page.")] = f"http://127.0.0.1:{PORT}/",
    write: Annotated[
        bool, typer.Option("--write", help="Write them into docs/pictures, not into this folder.")
    ] = False,
) -> None:
    """Take the pictures of a live page."""
    folder = FOLDER if write else Path()
    with browser() as chromium:
        for name, (scheme, size) in PICTURES.items():
            page = chromium.new_page(viewport=size, color_scheme=scheme)
            page.goto(url)
            picture = page.screenshot(path=folder / f"{name}.png")
            typer.echo(f"{folder / name}.png: {len(picture)} bytes")
            if len(picture) > LARGEST:
                raise typer.BadParameter(
                    f"{name} has {len(picture)} bytes; at most {LARGEST} belong into the repository"
                )


if __name__ == "__main__":
    typer.run(main)
