"""Names, amounts and times as the stack file wants them."""

import re
from math import ceil

from core.quantities import NotAQuantityError, amount


def dns_name(text: str, limit: int, fallback: str) -> str:
    """The nearest RFC 1035 label: lower-case letters, digits and hyphens, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name:
        return fallback
    if not name[0].isalpha():
        name = f"{fallback}-{name}"
    return name[:limit].rstrip("-")


def number(value: float) -> str:
    """A number without a fraction that says nothing: 2.0 is `2`."""
    return str(int(value)) if value == int(value) else str(value)


def duration(seconds: float) -> str:
    """Seconds as people write them: 300 is `5m`."""
    whole = max(1, round(seconds))
    for unit, length in (("h", 3600), ("m", 60)):
        if whole % length == 0:
            return f"{whole // length}{unit}"
    return f"{whole}s"


def bytes_quantity(count: float) -> str:
    """Bytes as a Kubernetes quantity: whole Gi, or else Mi rounded down."""
    whole = max(int(count), 2**20)
    return f"{whole // 2**30}Gi" if whole % 2**30 == 0 else f"{whole // 2**20}Mi"


def whole_cpus(cpu: str) -> str:
    """CPUs as Ray counts them from a container's: whole ones, rounded up; 1 where they cannot be told."""
    try:
        return str(ceil(amount(cpu)))
    except NotAQuantityError:
        return "1"
