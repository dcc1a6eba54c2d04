"""What a test needs of the machine, and what happens where the machine lacks it."""

import os
from typing import NoReturn

import pytest


def lacks(what: str) -> NoReturn:
    """Skips the test. With CI=true it fails, because continuous integration has to run it.

    `what`: what is missing, and how to get it; the summary shows it.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
