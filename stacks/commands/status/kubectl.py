"""Commands of kubectl for people to copy."""

import shlex

from core.problems import in_one_line


def kubectl(context: str | None, *words: str) -> str:
    """The command for the cluster of that context. Words are quoted: some are what users write into their objects."""
    return in_one_line(shlex.join(["kubectl", *(["--context", context] if context else []), *words]))
