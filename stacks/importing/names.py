"""Names, amounts and times as the stack file wants them."""

import re


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
    """Bytes as a Kubernetes quantity, in the greatest unit that is exact."""
    whole = int(count)
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return str(whole)
