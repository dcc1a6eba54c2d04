"""Detects secrets in plain text. A stack file is in git, and the values of a body are unencrypted in Pulumi's state."""

import re
from collections.abc import Mapping

from core.problems import Finding, Path, Problem

SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIALS?|APIKEY|CONNECTION_STRING"
    r"|(?:API|ACCESS|PRIVATE|SECRET|ENCRYPTION|SIGNING|ACCOUNT|STORAGE|AUTH)_KEY)(?:_|$)"
    r"|(?:^|_)(?:PASS|PGPASSWORD|MYSQL_PWD)$",
    re.IGNORECASE,
)
ABOUT_A_SECRET = re.compile(
    r"^GOOGLE_APPLICATION_CREDENTIALS$"
    r"|_(?:FILE|PATH|DIR|NAME|ID|MODE|TYPE|URL|URI|ENDPOINT|HEADER|TTL|SECONDS|TIMEOUT|PROVIDER|ENABLED|AUTH"
    r"|LENGTH|LEN|COUNT|LIMIT|SIZE|BUDGET|RATE|EXPIRY|EXPIRATION)$",
    re.IGNORECASE,
)
"""Suffixes of names that refer to a secret, or describe its use; and the one that Google defines as a path."""

HARMLESS = re.compile(
    r"(?:true|false|yes|no|on|off|[01]?|\$\([A-Za-z_]\w*\)|(?:/[\w.-]+){2,}|<[^<>]*>|\[[A-Z]{2,8}\])", re.IGNORECASE
)
"""Values that are not secrets: a boolean, Kubernetes' reference to another variable, the path of a file, a placeholder,
and a token of a language model such as `</s>` and `[PAD]`."""

PLACEHOLDER = re.compile(r"<[^<>]*>|\$(?:[A-Z][A-Z0-9_]*|\{[A-Za-z_][\w.-]*\})|\{\{[^{}]*\}\}")
"""A placeholder, to be filled in later: `<your-token>`, `$TOKEN`, `${job.token}`, `{{ token }}`."""

VARIABLE = r'^"?[$]([A-Za-z_][A-Za-z0-9_]*|[{][A-Za-z_][A-Za-z0-9_]*[}])"?$'
"""A text of a command line that is only a variable of its shell, and so no secret."""

FORMATS = {
    # Not of a placeholder: $PASSWORD, $(PASSWORD), <password>, {password}, %s, ***.
    "a password in a URL": r"://[^/\s:@]*:(?:[^/\s@$<{%*]|%[0-9A-Fa-f]{2})[^/\s@]*@",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a token of Hugging Face": r"\bhf_[A-Za-z]{30,}",
    "a token of GitHub": r"\bgh[opsur]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{40,}",
    "a token of GitLab": r"\bglpat-[A-Za-z0-9_-]{20}",
    "an API key of OpenAI or Anthropic": r"\bsk-[A-Za-z0-9_-]{32,}",
    "an access key of AWS": r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b",
    "an API key of Google": r"\bAIza[A-Za-z0-9_-]{35}",
    "a token of Slack": r"\bxox[abeprs]-[A-Za-z0-9-]{20,}",
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+",
}
"""Secrets that are known by their look, whatever the name of their variable, in a syntax that CEL has as well. The
prefixes are those of the publishers, the lengths those of github.com/gitleaks/gitleaks (config/gitleaks.toml)."""

SECRET_VALUE = re.compile("|".join(FORMATS.values()))

SECRET_VALUE_HAS = re.compile(r"://.*@|----|hf_|gh._|pat[_-]|sk-|A[KS]IA|AIza|xox|eyJ")
"""What each of FORMATS has. The API server limits the cost of CEL, which grows with the length of a pattern: nearly all
values need only this one."""

ADVICE = "keep it in a Secret, and name that with valueFrom.secretKeyRef in podTemplate or overrides"

ADVICE_OUTSIDE = "keep it on the cluster, in a file or a variable there"
"""Instead of ADVICE for what runs outside Kubernetes."""


def is_secret(name: str, value: str) -> bool:
    """Whether the value of an environment variable looks like a secret."""
    if SECRET_VALUE.search(value):
        return True
    return bool(SECRET.search(name)) and not ABOUT_A_SECRET.search(name) and not HARMLESS.fullmatch(value)


def in_plain_text(path: Path, kind: str) -> Finding:
    """The finding for a value of a stack file that contains a secret. `kind`: as of `secret_in`."""
    message = f"contains {kind}, and a stack file is plain text: {ADVICE}. Then replace it, because it has been seen"
    return Finding(path, None, message, "plaintext-secret")


_ARGUMENT = re.compile(r"--(?:[a-z]+[-_])*(?:password|passwd|api[-_]key)[ =](?=\S*[0-9])[A-Za-z0-9][^\s<$]{5,}")
"""A password or key after its option. One without a digit may be the name of something."""


def secret_in(text: str) -> str | None:
    """What kind of secret a text contains, as in FORMATS; None if it contains none that is known by its look."""
    if SECRET_VALUE.search(text) is None:
        return "a password in an argument" if _ARGUMENT.search(text) else None
    return next(name for name, pattern in FORMATS.items() if re.search(pattern, text))


_VALUE = r"(\"[^\"]*\"|'[^']*'|[^\s\"'()\[\]`]+)"
_IN_COMMANDS = re.compile(rf"(?:^|[\s;])(?:([A-Z][A-Z0-9_]*)=|--((?:[a-z0-9]+-)*(?:password|token|key))[ =]){_VALUE}")
"""Variables and flags in a command with their values."""


def secrets_of_command(command: str) -> list[str]:
    """Variables and flags of a command that are secrets by their names, where their values do not look like one."""
    found = ((name or flag, value) for name, flag, value in _IN_COMMANDS.findall(command))
    return list(dict.fromkeys(name for name, value in found if is_secret_by_name(name, value)))


def is_secret_by_name(name: str, value: object) -> bool:
    """Whether a value that does not look like a secret is one by its name."""
    text = str(value).strip("\"'")
    plain = text and not PLACEHOLDER.fullmatch(text) and not text.startswith("$") and not secret_in(text)
    return bool(plain) and is_secret(name.replace("-", "_"), text)


def plain_secrets(env: Mapping[str, str]) -> list[Problem]:
    """Problems for variables with secrets in plain text. They do not contain the values."""
    return [plain_secret(name).below((name,)) for name, value in env.items() if is_secret(name, value)]


def plain_secret(name: str) -> Problem:
    """The problem for the value of a variable."""
    return Problem(
        (), None, f"{name!r} looks like a secret, and a stack file is plain text: {ADVICE}", "plaintext-secret"
    )
