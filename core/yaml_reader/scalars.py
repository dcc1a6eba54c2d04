"""What a plain word of YAML stands for, as Pulumi reads it (gopkg.in/yaml.v3, resolve.go).

That is neither YAML 1.1 nor 1.2: `yes` is a word and `1:30` not of base sixty, as in 1.2; `0777` is octal, as in 1.1.
"""

import math
import re
from decimal import Decimal
from typing import Any

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[-+]\d\d:\d\d)?)?", re.ASCII)
_INTEGER = re.compile(r"[-+]?(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_MAY_BE_A_NUMBER = frozenset("+-.0123456789")
_WITHOUT_EXPONENT = 1e21
_LONGEST_INTEGER = 66
"""Characters of 64 bits with their prefix; what is longer is no integer to Go."""


class NotPlainError(ValueError):
    """A word that becomes something else, or nothing, on its way to the program; the message says what to write."""


def resolve(word: str) -> Any:
    """The value of a word that stands without quotes. Raises NotPlainError."""
    if word in _WORDS:
        return _WORDS[word]
    if word[0] not in _MAY_BE_A_NUMBER:
        return word
    if _NOT_FINITE.fullmatch(word):
        raise NotPlainError(f"{word} is not a number that can be used: write a finite one")
    if _DATE.fullmatch(word):
        raise NotPlainError(f"{word} is a date to YAML and would be rewritten: put it in quotes")
    digits = word.replace("_", "")
    integer = _integer(digits)
    return _float(digits, word) if integer is None else integer


def _integer(digits: str) -> int | None:
    found = _INTEGER.fullmatch(digits) if len(digits) <= _LONGEST_INTEGER else None
    if found is None or found.lastgroup is None:
        return None
    value = int(found[found.lastgroup], _BASES[found.lastgroup]) * (-1 if digits[0] == "-" else 1)
    return value if -(2**63) <= value < 2**63 else None


def _float(digits: str, word: str) -> float | str:
    value = float(digits) if _FLOAT.fullmatch(digits) else None
    if value is None or not math.isfinite(value):
        return word
    # Pulumi hands values over as JSON, in which Go writes whole numbers without a point.
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < _WITHOUT_EXPONENT else value
