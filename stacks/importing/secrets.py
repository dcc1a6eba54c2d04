"""Environment variables that a stack file must not have in plain text."""

from core.secrets import ADVICE, is_secret

from .reader import Reader


def is_noted_secret(name: str, value: str, part: Reader) -> bool:
    """Whether a variable is a secret in plain text; if so, it is noted without its value."""
    if not is_secret(name, value):
        return False
    part.note(f"{name!r} looks like a secret, and a stack file is plain text", ADVICE)
    return True
