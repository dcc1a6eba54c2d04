"""Commands of kubectl for people to copy."""

import shlex

from components.cluster import Connection
from core.problems import in_one_line


def kubectl(connection: Connection, *words: str) -> str:
    """The command for that cluster. Words are quoted: some are what users write into their objects."""
    context = ["--context", connection.context] if connection.context else []
    return in_one_line(shlex.join(["kubectl", *context, *words]))
