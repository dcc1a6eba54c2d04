"""The argument of the program, and how often it looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Body = Any

LOOK_SECONDS = 5
"""Between two looks."""

READ_SECONDS = 30
"""Between two readings of a running job's log and events, and of the jobs that a head lists."""

TRIES_SECONDS = 60
"""How long after the end of a job its log and events are tried to be read. A cluster that has not answered is asked
again after that time, too."""


@dataclass(frozen=True)
class Configured:
    """The argument of the program."""

    namespace: str
    folder: str
    """Where the records are; each namespace has a folder of its own there."""

    retention_days: int
    log_bytes: int
    read_heads: bool
    redaction: Body
    """Fields of Redaction."""

    external: list[Body] = field(default_factory=list)
    """External clusters whose jobs are recorded: `name`, `address`, `token` and `authority`, which are `name` and
    `key` of a Secret or None, and `others`: beginnings of the IDs of jobs of namespaces that begin as this one does."""
