"""The configuration of the stack that Pulumi is running."""

import json
from typing import Any

import pulumi

from .settings import PROJECT, StackSettings, parse


def running_stack() -> StackSettings:
    """The settings of the running stack. Raises StackFileError.

    All keys of the program's namespace are read, so that one that means nothing is refused; pulumi.Config only answers
    for keys that one knows to ask for.
    """
    prefix = f"{PROJECT}:"
    config = pulumi.runtime.get_config_env()
    return parse({key.removeprefix(prefix): _value(text) for key, text in config.items() if key.startswith(prefix)})


def _value(text: str) -> Any:
    """Pulumi hands over mappings and lists as JSON, and whatever was one word as that word."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
