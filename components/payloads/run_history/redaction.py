"""Removes secrets from what people write into RayJobs. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

REMOVED = "***"

_LONGEST = 64 * 1024
"""Characters of a text that are read. Reading a megabyte takes longer than a look."""


@dataclass(frozen=True)
class Redaction:
    """How secrets look, as regular expressions."""

    secret: str
    """Names of variables with secrets (core/secrets.py)."""

    about: str
    """Names that only refer to one."""

    masks: list[tuple[str, str]]
    """What is masked in a text, with what remains of it, in this order (components/logs/redaction.py)."""

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
        """A command without the values of options, variables, fields and headers with secrets."""
        return self.text(command)[:4096]

    def text(self, text: str) -> str:
        """A text without secrets."""
        text = text[:_LONGEST]
        for pattern, replacement in self.masks:
            text = re.sub(pattern, replacement, text)
        return text

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
