"""Detects secrets in plain text. A stack file is in git, and the values of a body are unencrypted in Pulumi's state."""

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
"""Suffixes of names that refer to a secret, or describe its use."""

HARMLESS = re.compile(r"(?:true|false|yes|no|on|off|[01]?|\$\([A-Za-z_]\w*\))", re.IGNORECASE)
"""Values that are no secrets: a boolean, or Kubernetes' reference to another variable."""

PLACEHOLDER = re.compile(r"<[^<>]*>|\$(?:[A-Z][A-Z0-9_]*|\{[A-Z][A-Z0-9_]*\})")
"""A placeholder, to be filled in later: `<your-token>`, `$TOKEN`, `${TOKEN}`."""

SECRET_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z ]*PRIVATE KEY-----")
"""A password in a URL, a private key."""

ADVICE = "keep it in a Secret, and name that with valueFrom.secretKeyRef in podTemplate or overrides"


def is_secret(name: str, value: str) -> bool:
    """Whether the value of an environment variable looks like a secret."""
    if SECRET_VALUE.search(value):
        return True
    return bool(SECRET.search(name)) and not ABOUT_A_SECRET.search(name) and not HARMLESS.fullmatch(value)


def plain_secrets(env: Mapping[str, str]) -> list[Problem]:
    """Problems for variables with secrets in plain text. They do not contain the values."""
    return [plain_secret(name).below((name,)) for name, value in env.items() if is_secret(name, value)]


def plain_secret(name: str) -> Problem:
    """The problem for the value of a variable."""
    return Problem(
        (), None, f"{name!r} looks like a secret, and a stack file is plain text: {ADVICE}", "plaintext-secret"
    )
