"""What the language host tells the user."""

from collections.abc import Iterator
from contextlib import contextmanager

import grpc


class HostError(Exception):
    """A message for the user: what is wrong with the project or its environment, and what to change."""


@contextmanager
def reported(context: grpc.ServicerContext) -> Iterator[None]:
    """Answers a call with the message of a HostError; the engine prints it as it is."""
    try:
        yield
    except HostError as error:
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
