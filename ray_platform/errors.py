"""Errors as Pulumi shows them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pulumi

from core.problems import StackFileError


@contextmanager
def without_traceback() -> Iterator[None]:
    """Pulumi shows a RunError without the traceback of the program."""
    try:
        yield
    except StackFileError as error:
        raise pulumi.RunError(str(error)) from error
