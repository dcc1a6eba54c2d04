"""The configuration of the stack that Pulumi is running."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi

from components.pulumi_internals import running_config
from core.environment import environment_of, group_of
from core.problems import Finding, StackFileError
from core.stack_file import (
    EXTENDS,
    FILE,
    PREFIX,
    StackFile,
    as_yaml,
    over_bases,
    read,
    stack_file,
    unmerged,
    with_prefix,
)
from core.values import inside
from stacks.launcher_files.configuration import CONFIGURATION
from stacks.load import encrypted, parse, settings_of
from stacks.objects.cml import API_KEY, without_key
from stacks.settings import StackSettings

BESIDE_FILE = "policies"
"""A key that such a configuration contains as well: Pulumi passes it to the policy pack."""


def running_stack() -> StackSettings:
    """The settings of the running stack. Raises StackFileError; with lines if `Pulumi.STACK.yaml` is what runs.

    Reads all keys of the program's namespace, so that unknown keys are refused.
    """
    config, hidden = running_config()
    # The key of Cloudera ML's API is for the provider, which gets it from Pulumi.
    api_key = f"{PREFIX}{API_KEY}"
    if secrets := sorted(key for key in hidden - {api_key} if key.startswith(PREFIX)):
        raise StackFileError([encrypted((key,)) for key in secrets])
    try:
        values = {
            key.removeprefix(PREFIX): _value(text)
            for key, text in config.items()
            if key.startswith(PREFIX) and not (key == api_key and key in hidden)
        }
        if FILE in values and not values.keys() - {FILE, BESIDE_FILE}:
            return _of_file(stack_file(values[FILE], read(Path(values[FILE]))))
        return _parsed(values)
    except RecursionError as error:
        message = "the configuration has too many mappings and lists within each other: is it this program's?"
        raise StackFileError([Finding((), None, message, "yaml")]) from error


def _parsed(values: dict[str, Any]) -> StackSettings:
    # The file has lines, and numbers as they are written, which the configuration has not: `2.10` is 2.1 there.
    if file := _file_of(values):
        return _of_file(file)
    if EXTENDS not in values and not any(path[-1:] == (CONFIGURATION,) for path, _ in inside(values)):
        return parse(values)
    try:
        return _of_file(
            stack_file("configuration", as_yaml({"config": {f"{PREFIX}{key}": each for key, each in values.items()}}))
        )
    except StackFileError as error:
        # Lines of the files that it names are known.
        found = [each if each.file else replace(each, line=None) for each in error.findings]
        raise StackFileError(found) from error


def _of_file(file: StackFile) -> StackSettings:
    # `ray-platform up` has judged all: a thousand RayClusters take two seconds, and each of the stacks a program.
    return settings_of(file, group_of(pulumi.get_stack()))


def _value(text: str) -> Any:
    """Parses a value. Pulumi passes mappings and lists as JSON, and scalars as text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _file_of(values: dict[str, Any]) -> StackFile | None:
    """The stack file if it matches the running configuration; `--config-file` and `pulumi config set` can differ from
    it. Raises StackFileError if it matches and cannot be merged over its bases."""
    path = Path(f"Pulumi.{environment_of(pulumi.get_stack())}.yaml")
    try:
        file = unmerged(path, read(path))
    except StackFileError:
        return None
    same = without_key(with_prefix(PREFIX, file.own_config)) == without_key(values)
    return over_bases(file) if same else None
