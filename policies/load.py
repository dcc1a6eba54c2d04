"""Loads the configuration of the rules: from the pack's file, from a stack file, and from Pulumi's configuration."""

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
"""The default file."""

KEY = f"{PREFIX}policies"
"""Key of the policies in a stack file."""


class ConfigurationError(Exception):
    """The configuration of the rules is not valid; the text has one line for each error."""


class _StackPolicies(Settings):
    policies: PoliciesSettings = PoliciesSettings()


def load(file: Path = FILE) -> Configuration:
    """Loads a configuration file of the pack. Raises ConfigurationError."""
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{file}: cannot be read: {' '.join(str(error).split())}") from error
    try:
        return Configuration.model_validate({} if values is None else values, by_alias=True, by_name=False)
    except ValidationError as error:
        mapping = values if isinstance(values, Mapping) else {}
        found = findings(error.errors(include_url=False), Configuration, mapping, "")
        raise ConfigurationError("\n".join(each.in_file(str(file)) for each in found)) from error


def of_stack_file(file: Path) -> PoliciesSettings:
    """The policies in a stack file, of any Pulumi program. Raises ConfigurationError."""
    try:
        loaded = stack_file(file, read(file))
        policies, found = _validated(loaded.config.get(KEY))
        if found:
            raise loaded.error(found)
    except StackFileError as error:
        raise ConfigurationError(str(error)) from error
    return policies


def of_config(config: Mapping[str, str]) -> PoliciesSettings:
    """The policies in the configuration of a stack, as the engine passes it. Raises ConfigurationError."""
    text = config.get(KEY)
    try:
        value = None if text is None else json.loads(text)
    except ValueError:
        value = text
    policies, found = _validated(value)
    if found:
        raise ConfigurationError("\n".join(map(str, found)))
    return policies


def _validated(value: Any) -> tuple[PoliciesSettings, list[Finding]]:
    values = {} if value is None else {"policies": value}
    try:
        return _StackPolicies.model_validate(values, by_alias=True, by_name=False).policies, []
    except ValidationError as error:
        return PoliciesSettings(), findings(error.errors(include_url=False), _StackPolicies, values, PREFIX)
