"""What looks like a secret in plain text. A stack file is kept in git, and a body's values in Pulumi's plain state."""

import re
from collections.abc import Mapping

from .problems import Problem

SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?|APIKEY|CONNECTION_STRING"
    r"|(?:API|ACCESS|PRIVATE|SECRET|ENCRYPTION|SIGNING|ACCOUNT|STORAGE|AUTH)_KEY)(?:_|$)",
    re.IGNORECASE,
)
ABOUT_A_SECRET = re.compile(
    r"_(?:FILE|PATH|DIR|NAME|ID|MODE|TYPE|URL|URI|ENDPOINT|HEADER|TTL|SECONDS|TIMEOUT|PROVIDER|ENABLED|AUTH)$",
    re.IGNORECASE,
)
"""Endings of names that only say where a secret is, or how it is used."""

HARMLESS = re.compile(r"(?:true|false|yes|no|on|off|[01]?|\$\([A-Za-z_]\w*\))", re.IGNORECASE)
"""Values that keep nothing secret: a switch, or Kubernetes' reference to another variable."""

PLACEHOLDER = re.compile(r"<[^<>]*>|\$(?:[A-Z][A-Z0-9_]*|\{[A-Z][A-Z0-9_]*\})")
"""A text that says only that something is to be filled in: `<your-token>`, `$TOKEN`, `${TOKEN}`."""

SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----")
"""A password in a URL, a private key."""

ADVICE = "keep it in a Secret, and name that with valueFrom.secretKeyRef in podTemplate or overrides"


def is_secret(name: str, value: str) -> bool:
    """Whether an environment variable looks as if its value had to be kept secret."""
    if SECRET_VALUE.search(value):
        return True
    return bool(SECRET.search(name)) and not ABOUT_A_SECRET.search(name) and not HARMLESS.fullmatch(value)


def plain_secrets(env: Mapping[str, str]) -> list[Problem]:
    """The variables of an environment that are secrets in plain text. The problems do not repeat the values."""
    return [plain_secret(name).below((name,)) for name, value in env.items() if is_secret(name, value)]


def plain_secret(name: str) -> Problem:
    """Of the value that a name stands before."""
    return Problem(
        (), None, f"{name!r} looks like a secret, and a stack file is plain text: {ADVICE}", "plaintext-secret"
    )
