"""Errors that the language host reports to the user."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc


class HostError(Exception):
    """A message for the user: the problem of the project or its environment, and its fix."""


@contextmanager
def reported(context: grpc.ServicerContext) -> Iterator[None]:
    """Answers a call with the message of a HostError; the engine prints it unchanged."""
    try:
        yield
    except HostError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
