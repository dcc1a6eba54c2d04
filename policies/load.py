"""Reads what is said about rules: in the pack's file, in a stack file, and in the configuration that Pulumi tells."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from core.findings import Finding, StackFileError
from core.messages import findings
from core.stack_file import PREFIX, read, stack_file
from core.types import Settings

from .configuration import Configuration, PoliciesSettings

FILE = Path(__file__).with_name("configuration.yaml")
"""What holds where no other file is named."""

KEY = f"{PREFIX}policies"
"""Key under which a stack file speaks of rules."""


class ConfigurationError(Exception):
    """What is said about rules cannot be used; the text has a line for each fault."""


class _Said(Settings):
    policies: PoliciesSettings = PoliciesSettings()


def load(file: Path = FILE) -> Configuration:
    """The configuration in a file of the pack's. Raises ConfigurationError."""
    try:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    try:
        return Configuration.model_validate({} if said is None else said, by_alias=True, by_name=False)
    except ValidationError as error:
        values = said if isinstance(said, Mapping) else {}
        found = findings(error.errors(include_url=False), Configuration, values, "")
        raise ConfigurationError("\n".join(each.in_file(str(file)) for each in found)) from error


def of_stack_file(file: Path) -> PoliciesSettings:
    """What a stack file says about rules, of whatever program it is. Raises ConfigurationError."""
    try:
        there = stack_file(file, read(file))
        said, found = _said(there.config.get(KEY))
        if found:
            raise there.error(found)
    except StackFileError as error:
        raise ConfigurationError(str(error)) from error
    return said


def of_config(config: Mapping[str, str]) -> PoliciesSettings:
    """What a stack says about rules in its configuration, as the engine tells it. Raises ConfigurationError."""
    text = config.get(KEY)
    try:
        value = None if text is None else json.loads(text)
    except ValueError:
        value = text
    said, found = _said(value)
    if found:
        raise ConfigurationError("\n".join(map(str, found)))
    return said


def _said(value: Any) -> tuple[PoliciesSettings, list[Finding]]:
    values = {} if value is None else {"policies": value}
    try:
        return _Said.model_validate(values, by_alias=True, by_name=False).policies, []
    except ValidationError as error:
        return PoliciesSettings(), findings(error.errors(include_url=False), _Said, values, PREFIX)
