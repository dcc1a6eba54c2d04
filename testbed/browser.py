"""A real browser for tests and pictures: Debian's Chromium without a window, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ViewportSize, sync_playwright

from testbed.machine import lacks

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
"""Chromium's names. Playwright's own browser would be a download."""

PHONE: ViewportSize = {"width": 360, "height": 780}
"""Pixels of a small phone."""


@contextmanager
def browser(*arguments: str) -> Iterator[Browser]:
    """A Chromium with these arguments. Without one the test is skipped; with CI=true it fails."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        lacks("not on the PATH: chromium; it is in the package chromium")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield made
        finally:
            made.close()
