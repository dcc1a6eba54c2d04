"""Removes secrets from what people write into RayJobs. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

REMOVED = "***"

_LONGEST = 64 * 1024
"""Characters of a runtime environment that is read. Reading a megabyte takes longer than a look."""

_FIELD = re.compile(r"""(?P<name>[\w-]+)(?P<between>\\?["']\s*:\s*)(?P<quote>\\?["']).*?(?P=quote)""", re.DOTALL)
"""A field of JSON in a command, also of escaped JSON."""

_HEADER = re.compile(r"""((?<=["'])[A-Za-z][\w-]*:)[^"'\\]+|((?<!\S)[A-Za-z][\w-]*:)(?!//)[^\s"']+""")
"""A header of HTTP in a command: in quotes up to the last one, else up to the next space."""

_CREDENTIALS = re.compile(r"authorization|cookie", re.IGNORECASE)
"""Headers with credentials whose names do not show it."""


@dataclass(frozen=True)
class Redaction:
    """How secrets look, as regular expressions (core/secrets.py)."""

    secret: str
    """Names of variables with secrets."""

    about: str
    """Names that only refer to one."""

    values: str
    """Values that are secrets by their look."""

    def settings(self, yaml_text: str) -> Any:
        """A runtime environment without its secrets; None if it cannot be read, so that nothing leaks."""
        # Part of Ray's images, because Ray itself needs it.
        import yaml

        class Loader(yaml.SafeLoader):
            def compose_node(self, parent: Any, index: Any) -> Any:
                # A few of them can stand for more than the memory, or for themselves.
                if self.check_event(yaml.AliasEvent):
                    raise ValueError("an alias")
                return super().compose_node(parent, index)

        if not yaml_text or len(yaml_text) > _LONGEST:
            return None
        try:
            return self._clean(yaml.load(yaml_text, Loader))  # noqa: S506 (a SafeLoader)
        except Exception:  # people write it: PyYAML also raises LookupError and RecursionError
            return None

    def command(self, command: str) -> str:
        """A command without the values of `NAME=value`, `--name=value`, `--name value`, `"name": "value"` and
        `Name: value` whose name is a secret's; a value in quotes ends with them."""
        words = re.split(r"(\s+)", _HEADER.sub(self._header, command))
        hides, quote = False, ""
        for at, word in enumerate(words):
            if quote:
                words[at], quote = "", "" if quote in word else quote
                continue
            if not word.strip():
                continue
            name, given, value = word.partition("=")
            if hides and not word.startswith("-"):
                words[at], hides, quote = REMOVED, False, _opened(word)
                continue
            hides = self._is_secret(name) and name.startswith("-") and not given
            if given and self._is_secret(name):
                words[at], quote = f"{name}={REMOVED}", _opened(value)
        return self.text(_FIELD.sub(self._field, "".join(words)))[:4096]

    def text(self, text: str) -> str:
        """A text without what is a secret by its look."""
        return re.sub(self.values, REMOVED, text)

    def _field(self, found: re.Match[str]) -> str:
        quote = found["quote"]
        kept = f"{found['name']}{found['between']}{quote}{REMOVED}{quote}"
        return kept if self._is_secret(found["name"]) else found[0]

    def _header(self, found: re.Match[str]) -> str:
        start = found[1] or found[2]
        if not self._is_secret(start[:-1]) and not _CREDENTIALS.search(start):
            return found[0]
        return f"{start} {REMOVED}" if found[1] else f"{start}{REMOVED}"

    def _is_secret(self, name: str) -> bool:
        plain = name.strip("-'\"").replace("-", "_")
        return bool(re.search(self.secret, plain, re.IGNORECASE)) and not re.search(self.about, plain, re.IGNORECASE)

    def _clean(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                str(key): REMOVED if self._is_secret(str(key)) else self._clean(each) for key, each in value.items()
            }
        if isinstance(value, list):
            return [self._clean(each) for each in value]
        return self.text(value) if isinstance(value, str) else value


def _opened(value: str) -> str:
    """The quote that a value begins with, if it ends in a later word; else empty."""
    plain = value.lstrip("\\")
    quote = plain[:1]
    return quote if quote in ("'", '"') and quote not in plain[1:] else ""
