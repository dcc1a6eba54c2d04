"""The secrets that the log collector and the run history mask, as regular expressions in the common syntax of RE2 and
Python.

Beside the secrets that are known by their look (core/secrets.py) these are values behind a name that tells what they
are, and Ray's own tokens.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core.secrets import FORMATS

MASK = "***"


@dataclass(frozen=True)
class Redaction:
    """Texts to mask.

    Fields: `replacement`: what remains, with `$1` for the first group of the pattern; `has`: texts in lower case, one
    of which is in each match, whatever its case; empty: unknown. Nearly all lines have none, and looking for them takes
    less time than the pattern (docs/measurements/logs.md).
    """

    name: str
    pattern: str
    replacement: str = MASK
    has: tuple[str, ...] = ()

    @property
    def replacement_of_python(self) -> str:
        """The replacement for Python's `re.sub`."""
        return re.sub(r"\$(\d)", r"\\g<\1>", self.replacement)


_NAMES = (
    "(?:token|passwords?|passwd|passphrase|secret|credentials?|connection_string|[_-]pwd"
    r"|(?:api|access|private|secret|encryption|signing|account|storage|auth)[_-]?key)(?:_?\d+)?"
)
"""Ends of names of variables, options and fields with a secret. Not `tokens`, which language models count."""

_HAVE_NAMES = ("token", "passw", "passphrase", "secret", "credential", "connection_string", "pwd", "key")

_QUOTE = r"""\\*["']"""
"""Also escaped, as in JSON within JSON, however deep."""

_COLOUR = r"(?:\x1b\[[\d;]*m)*"
"""Colours of a terminal, which some loggers write around names and values."""

_IS = rf"{_COLOUR}(?:{_QUOTE})?\s*(?:=>|[=:])\s*{_COLOUR}"
"""Between a name and its value."""

_NEXT = rf"{_QUOTE}\s*,\s*(?:(?:{_QUOTE})?value(?:{_QUOTE})?\s*[=:]\s*)?"
"""Between a name and its value in a tuple, a list of arguments, or an `env` of Kubernetes."""

_QUOTED = (
    r"[bruf]{0,2}(?:"
    r"""(\\+")[^"]*"|(\\+')[^']*'|(")(?:[^"\\]|(?s:\\.))*"|(')(?:[^'\\]|(?s:\\.))*'"""
    # One without its end.
    r"""|\\*["'][^\n]*)"""
)
"""A value in quotes, which are its four groups."""

_WORD = r"""[^\s"',;})\]&\\]+"""

_MASKED = f"$1$2$3$4$5{MASK}$2$3$4$5"
"""What remains of a name, the first group, and its value, `_QUOTED` or not."""

_SCHEME = "(?:bearer|basic|token|apikey)"

_CREDENTIAL = r"""[^\s"',;})\]\\]+"""

_OF_HEADER = rf"(?:{_IS}|{_NEXT})(?:[bruf]{{0,2}}{_QUOTE})?"
"""Between the name of a header and its value."""

_KEY = "[A-Z0-9 ]*PRIVATE KEY-----"
"""The end of both marks of a private key in PEM."""

_LOOKS = (
    *(look for name, look in FORMATS.items() if name not in ("a private key", "a password in a URL")),
    # NVIDIA, npm, PyPI, Docker and Google.
    r"\b(?:nvapi-[\w-]{40}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{40}|dckr_pat_[\w-]{20}|ya29\.[\w-]{20})[\w-]*",
)

_HAVE_LOOKS = (
    *("hf_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "sk-", "akia", "asia", "aiza", "xox"),
    *("eyj", "nvapi-", "npm_", "pypi-", "dckr_pat_", "ya29."),
)

REDACTIONS = (
    # The whole key, also as one line with \n in it, and one whose end is missing.
    Redaction(
        "a private key",
        rf"-----BEGIN {_KEY}(?:[\w\s+/=:,.\\-]*?-----END {_KEY}|[\s\w+/=\\]*)",
        has=("-----begin",),
    ),
    # Of a scheme that is not known here, its name is masked too. A cookie is masked up to the end of its line.
    Redaction(
        "a header",
        rf"(?i)(authorization{_OF_HEADER})(?:({_SCHEME}\s+){_CREDENTIAL}|{_CREDENTIAL}(?:[ \t]+{_CREDENTIAL})?)"
        rf"|(cookie{_OF_HEADER})[^\s\"'\\][^\"'\\\n]*",
        f"$1$2$3{MASK}",
        has=("authorization", "cookie"),
    ),
    Redaction("a bearer token", r"(?i)\b(bearer\s+)[\w.~+/=-]{16,}", f"$1{MASK}", has=("bearer",)),
    # FORMATS knows placeholders, and a password up to its first @. In a log, all is masked up to the last one.
    Redaction("a password in a URL", r"""://[^/\s:@]*:[^/\s"']*@""", f"://{MASK}@", has=("://",)),
    Redaction(
        "a signature in a URL",
        rf"(?i)([?&](?:sig|(?:x-amz-|x-goog-)?signature)=){_WORD}",
        f"$1{MASK}",
        has=("sig=", "signature="),
    ),
    Redaction("a secret known by its look", "|".join(_LOOKS), has=_HAVE_LOOKS),
    Redaction(
        "a value of a name",
        rf"(?i)({_NAMES}(?:{_IS}|{_NEXT}))(?:{_QUOTED}|(?:{_SCHEME}[ \t]+)?{_WORD})",
        _MASKED,
        has=_HAVE_NAMES,
    ),
    # It begins a word: Python would try each of many hyphens.
    Redaction(
        "an option of a command",
        rf"(?i)((?:^|[^\w-])--[\w-]*{_NAMES}\s+)(?:{_QUOTED}|[^\s\"'-]\S*)",
        _MASKED,
        has=("--",),
    ),
    # 32 random bytes in base64 (ray-operator/controllers/ray/raycluster_controller.go: generateRandomToken).
    Redaction("a token of KubeRay", r"(^|[^\w+/])[A-Za-z0-9+/]{43}=", f"$1{MASK}", has=("=",)),
    # 32 random bytes in hexadecimal (ray/_private/authentication/authentication_token_generator.py). A checksum looks
    # the same; `sha256:...` remains. In a URL the character before may be `%3D`.
    Redaction("a token of Ray", r"(^|[^\w:]|\D:|%[0-9A-Fa-f]{2})[0-9a-f]{64}\b", f"$1{MASK}"),
)
"""In this order. An authorization header is masked before what is in it."""


def redactions(further: Iterable[str]) -> tuple[Redaction, ...]:
    """All redactions. `further`: regular expressions of the stack file."""
    return (*REDACTIONS, *(Redaction(pattern, pattern) for pattern in further))
