"""Kubernetes quantities: `1000m` and `1`, or `1024Mi` and `1Gi`, are the same amount written differently.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import re
from decimal import Decimal
from typing import Any

_FORMAT = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?|[+-]?\.[0-9]+)(?:([eE][+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]))?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: dict[str, int] = {
    suffix: 1024**power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}

_HOLDERS = frozenset({"allocatable", "capacity", "default", "defaultRequest", "hard", "limits", "overhead", "requests"})
_FIELDS = frozenset({"divisor", "sizeLimit"})


def amount(value: Any) -> Decimal | None:
    """The number of a quantity, None if it is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    match = _FORMAT.fullmatch(str(value))
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    if exponent:
        return Decimal(number).scaleb(int(exponent[1:]))
    if suffix in _BINARY:
        return Decimal(number) * _BINARY[suffix]
    return Decimal(number).scaleb(_DECIMAL.get(suffix, 0))


def is_quantity_field(path: tuple[str | int, ...]) -> bool:
    """Whether Kubernetes' own kinds have a quantity at a path, e.g. `spec.hard["requests.cpu"]`."""
    return path[-1] in _FIELDS or (len(path) > 1 and path[-2] in _HOLDERS)


def same_amount(one: Any, other: Any) -> bool:
    return amount(one) is not None and amount(one) == amount(other)
