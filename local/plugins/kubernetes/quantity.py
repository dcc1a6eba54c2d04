"""Kubernetes quantities: `1000m` and `1`, or `1024Mi` and `1Gi`, are the same amount written differently.

https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from decimal import Decimal
from typing import Any

from core.quantities import NotAQuantityError, amount

_HOLDERS = frozenset({"allocatable", "capacity", "default", "defaultRequest", "hard", "limits", "overhead", "requests"})
_FIELDS = frozenset({"divisor", "sizeLimit"})


def _amount(value: Any) -> Decimal | None:
    """The number of a quantity, None if it is not a quantity."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return amount(str(value))
    except NotAQuantityError:
        return None


def is_quantity_field(path: tuple[str | int, ...]) -> bool:
    """Whether Kubernetes' own kinds have a quantity at a path, e.g. `spec.hard["requests.cpu"]`."""
    return path[-1] in _FIELDS or (len(path) > 1 and path[-2] in _HOLDERS)


def same_amount(one: Any, other: Any) -> bool:
    return _amount(one) is not None and _amount(one) == _amount(other)
