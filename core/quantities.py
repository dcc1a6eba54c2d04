"""Kubernetes quantities: `500m`, `64Gi`, `1e3`.

The syntax is that of k8s.io/apimachinery, pkg/api/resource/quantity.go. The Python client can parse them too, but takes
a third of a second to import, and accepts `inf`, `1_000` and other numbers of Python.
"""

import functools
import re
from decimal import Decimal

from core.suggestions import amount_meant, memory_meant

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40}))"
    r"(?:(?P<binary>[KMGTPE]i)|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
_BINARY = {suffix: Decimal(1024**power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {
    suffix: Decimal(10) ** power for suffix, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)
}

LARGEST = 2**63 - 1
"""Kubernetes caps larger amounts."""


class NotAQuantityError(ValueError):
    """The text is not a quantity."""

    def __init__(self, text: str, meant: str | None) -> None:
        """`meant`: the quantity that it means, if that is known."""
        advice = f": did you mean {meant!r}?" if meant else "; write for example 8, 500m or 64Gi"
        super().__init__(f"{text!r} is not a Kubernetes quantity{advice}")


@functools.lru_cache(maxsize=4096)
def amount(quantity: str) -> Decimal:
    """The value of a Kubernetes quantity: `500m` is 0.5, `1Gi` is 1073741824.

    Raises NotAQuantityError.
    """
    found = _QUANTITY.fullmatch(quantity)
    if found is None:
        raise NotAQuantityError(quantity, amount_meant(quantity))
    number = Decimal(found["number"])
    if found["binary"]:
        return number * _BINARY[found["binary"]]
    if found["decimal"]:
        return number * _DECIMAL[found["decimal"]]
    return number.scaleb(int(found["exponent"])) if found["exponent"] else number


def canonical(value: Decimal) -> str:
    """The text of an amount as Kubernetes writes it back: the largest decimal suffix that leaves a whole number
    (k8s.io/apimachinery, pkg/api/resource/quantity.go: CanonicalizeBytes of DecimalSI). `value`: at least a billionth,
    or zero."""
    for suffix, size in sorted({**_DECIMAL, "": Decimal(1)}.items(), key=lambda item: item[1], reverse=True):
        if value and value % size == 0:
            return f"{value / size:.0f}{suffix}"
    return "0"


def shown(resource: str, value: Decimal) -> str:
    """An amount of a resource for messages: bytes in Gi or Mi, all others as a number."""
    if resource.endswith(("memory", "storage")):
        for unit, size in (("Gi", 2**30), ("Mi", 2**20)):
            if value >= size:
                return f"{_plain(value / size)}{unit}"
    return _plain(value)


def _plain(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.001')).normalize():f}"


def _amount_of(text: str) -> Decimal:
    value = amount(text)
    if value < 0:
        raise ValueError(f"{text!r} is less than zero; write for example 8, 500m or 64Gi")
    if value > LARGEST:
        raise ValueError(f"{text!r} is larger than the maximum of Kubernetes (2^63 - 1): write a smaller amount")
    return value


def not_negative(text: str) -> str:
    """The text of an amount of zero or more. Raises ValueError with what is allowed."""
    _amount_of(text)
    return text


def positive(text: str) -> str:
    """The text of an amount of more than zero. Raises ValueError with what is allowed."""
    if _amount_of(text) == 0:
        raise ValueError(f"{text!r} is not more than zero; write for example 8, 500m or 64Gi")
    return text


def memory(text: str) -> str:
    """The text of an amount of memory, at least 1Mi. Raises ValueError with what is allowed."""
    try:
        value = amount(positive(text))
    except NotAQuantityError as error:
        meant = amount_meant(text)
        raise error if meant and amount(meant) >= _LEAST_MEMORY else NotAQuantityError(text, None) from None
    if value < _LEAST_MEMORY:
        meant = memory_meant(text)
        clear = meant and amount(meant) >= _LEAST_MEMORY
        advice = f"did you mean {meant!r}?" if clear else "write for example 64Gi"
        raise ValueError(f"{text!r} is less than 1Mi, and memory is in bytes: {advice}")
    return text


_LEAST_MEMORY = 2**20
