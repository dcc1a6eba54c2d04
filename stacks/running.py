"""The configuration of the stack that Pulumi is running."""

import json
from pathlib import Path
from typing import Any

import pulumi

from core.environment import environment_of
from core.problems import Finding, StackFileError
from core.stack_file import PREFIX, StackFile, read, stack_file

from .load import encrypted, installable, parse, settings_of
from .settings import StackSettings

FILE = "file"
"""Key of a configuration that names the stack file instead of repeating it (environment/workspace.py)."""

BESIDE_FILE = "policies"
"""A key that such a configuration contains as well: Pulumi passes it to the policy pack."""


def running_stack() -> StackSettings:
    """The settings of the running stack. Raises StackFileError; with lines if `Pulumi.STACK.yaml` is what runs.

    Reads all keys of the program's namespace, so that unknown keys are refused; pulumi.Config only returns keys that
    are asked for by name.
    """
    config = pulumi.runtime.get_config_env()
    if secrets := [key for key in pulumi.runtime.get_config_secret_keys_env() if key.startswith(PREFIX)]:
        raise StackFileError([encrypted((key,)) for key in secrets])
    try:
        values = {key.removeprefix(PREFIX): _value(text) for key, text in config.items() if key.startswith(PREFIX)}
        if FILE in values and not values.keys() - {FILE, BESIDE_FILE}:
            return _of_file(stack_file(values[FILE], read(Path(values[FILE]))))
        return _parsed(values)
    except RecursionError as error:
        message = "the configuration has too many mappings and lists within each other: is it this program's?"
        raise StackFileError([Finding((), None, message, "yaml")]) from error


def _parsed(values: dict[str, Any]) -> StackSettings:
    # The file has lines, and numbers as they are written, which the configuration has not: `2.10` is 2.1 there.
    file = _file_of(values)
    return _of_file(file) if file else installable(parse(values))


def _of_file(file: StackFile) -> StackSettings:
    return installable(settings_of(file), file)


def _value(text: str) -> Any:
    """Parses a value. Pulumi passes mappings and lists as JSON, and scalars as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _file_of(values: dict[str, Any]) -> StackFile | None:
    """The stack file if it matches the running configuration; `--config-file` and `pulumi config set` can differ from
    it."""
    path = Path(f"Pulumi.{environment_of(pulumi.get_stack())}.yaml")
    try:
        file = stack_file(path, read(path))
    except StackFileError:
        return None
    return file if file.values(PREFIX) == values else None
