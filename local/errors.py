"""Errors for the user at the terminal."""

import errno


class RehearsalError(Exception):
    """One message with the problem and its fix; the command line prints it without a traceback."""


def message_of(error: Exception) -> str | None:
    """The message of an error whose cause is not in this program; None for any other."""
    # Imported for errors alone: each of the rehearsal's processes imports this module.
    import typer
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    from core.problems import StackFileError

    if isinstance(error, RehearsalError | StackFileError):
        return str(error)
    if isinstance(error, typer.TyperException):
        return error.format_message() or "a command is missing"
    if isinstance(error, PermissionError):
        return f"{error.filename}: {error.strerror}: run the command as the user whom this belongs to"
    if isinstance(error, OSError) and error.errno == errno.EROFS:
        return f"{error.filename}: {error.strerror}: copy the checkout to a folder of yours, and run it there"
    if isinstance(error, HTTPError) or (isinstance(error, ApiException) and (error.status or 0) >= 500):
        return (
            f"the rehearsal's API server does not answer: {getattr(error, 'reason', error)}. "
            "Wait a few seconds if it is starting; `make status` shows what runs, and `make up` starts it"
        )
    return None
