"""Errors for the user at the terminal."""


class RehearsalError(Exception):
    """One message with the problem and its fix; the command line prints it without a traceback."""
