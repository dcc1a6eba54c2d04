"""What went wrong, said to the person at the terminal."""


class RehearsalError(Exception):
    """One message that says what is wrong and what to do; the command line prints it without a traceback."""
