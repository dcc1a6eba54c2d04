"""CPU seconds of commands."""

import resource


def children_cpu() -> float:
    """User and system CPU seconds of all child processes that have ended, with theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
