"""Resolves plain scalars of YAML as Pulumi does (gopkg.in/yaml.v3, resolve.go).

That is neither YAML 1.1 nor 1.2: `yes` is text and `1:30` is not base 60, as in 1.2; `0777` is octal, as in 1.1.
"""

import math
import re
from decimal import Decimal
from typing import Any, NamedTuple

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BOOLEANS_OF_KUBERNETES = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([Tt ]\d{1,2}:\d{1,2}:\d{1,2}(\.\d+)?(Z|[-+]\d\d:\d\d)?)?", re.ASCII)
_INTEGER = re.compile(r"[-+]?(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)|(?P<d>0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = {"x": 16, "b": 2, "o": 8, "d": 10}
_MAY_BE_A_NUMBER = frozenset("+-.0123456789")
_WITHOUT_EXPONENT = 1e21
_LONGEST_INTEGER = 66
"""Characters of a 64-bit integer in base 2 with its prefix; Go parses no longer integers."""


UNUSUAL_SPACE = re.compile(r"[ ]*(-[ ]+)*([\w./-]+:[ ]*)?[\u00a0\u2000-\u200b\u202f\u3000]")
"""One that ends neither an indentation nor a key. No scalar without quotes begins with it."""


class NotPlainError(ValueError):
    """A scalar that would reach the program as another value, or not at all; the message names the correct form."""


class Rewritten:
    """A number that a program would receive as another text than the written one: 2.1 for `2.10`, 18 for `0022`."""

    written: str


class _Whole(Rewritten, int):
    pass


class _Fraction(Rewritten, float):
    pass


def resolve(word: str) -> Any:
    """The value of an unquoted scalar; of a number whose text changes, an instance of Rewritten. Raises
    NotPlainError."""
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
    value = _float(digits, word) if integer is None else integer
    return value if str(value) == word else _rewritten(value, word)


def resolve_of_kubernetes(word: str) -> Any:
    """As `resolve`, for what Kubernetes' tools and KubeRay read (sigs.k8s.io/yaml, goyaml.v2: resolve.go, decode.go):
    more words are booleans, and a date is text."""
    if word in _BOOLEANS_OF_KUBERNETES:
        return _BOOLEANS_OF_KUBERNETES[word]
    return word if _DATE.fullmatch(word) else resolve(word)


def _rewritten(number: float, word: str) -> Rewritten:
    found = _Whole(number) if isinstance(number, int) else _Fraction(number)
    found.written = word
    return found


def _integer(digits: str) -> int | None:
    found = _INTEGER.fullmatch(digits) if len(digits) <= _LONGEST_INTEGER else None
    if found is None or found.lastgroup is None:
        return None
    value = int(found[found.lastgroup], _BASES[found.lastgroup]) * (-1 if digits[0] == "-" else 1)
    return value if -(2**63) <= value < 2**63 else None


def _float(digits: str, word: str) -> Any:
    value = float(digits) if _FLOAT.fullmatch(digits) else None
    if value is None or not math.isfinite(value):
        return word
    # Pulumi passes values as JSON, in which Go writes whole numbers without a decimal point.
    return int(Decimal(repr(value))) if value.is_integer() and abs(value) < _WITHOUT_EXPONENT else value


class Span(NamedTuple):
    """Place in a text: line and column from 1; it ends before `end_column`, None if on another line."""

    line: int
    column: int
    end_column: int | None = None
    file: str | None = None
    """Name of the text's file, if it is not the stack file itself: a base of it, or a launcher file."""


class DocumentError(ValueError):
    """The text is not valid YAML, or is not accepted."""

    def __init__(self, message: str, span: Span, rule: str = "yaml") -> None:
        """Keeps the message, the place and the rule."""
        super().__init__(message)
        self.message, self.span, self.rule = message, span, rule


class Node:
    """A value with its span, and the nodes of its children."""

    __slots__ = ("children", "depth", "key_spans", "size", "span", "value", "word")

    def __init__(self, value: Any, span: Span) -> None:
        """A value without children."""
        self.value = value
        self.word: str | None = None
        """Of a boolean: `yes`."""
        self.span = span
        self.size = 1
        self.depth = 0
        self.children: dict[str | int, Node] = _NO_CHILDREN
        self.key_spans: dict[str | int, Span] = _NO_KEYS


# Shared by all scalars, which are most values of a file.
_NO_CHILDREN: dict[str | int, Node] = {}
_NO_KEYS: dict[str | int, Span] = {}
