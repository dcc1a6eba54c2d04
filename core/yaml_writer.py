"""Writes YAML that programs in Go read as the same values: Pulumi, Kubernetes' tools and KubeRay."""

from typing import Any

import yaml
from yaml.representer import SafeRepresenter

from core.yaml_reader.scalars import UNUSUAL_SPACE, NotPlainError, resolve, resolve_of_kubernetes

_BREAKS = frozenset("\x85\u2028\u2029")
"""Line breaks of YAML 1.1 that are text to YAML 1.2. Only double quotes have escapes for them."""


def go_yaml(value: Any, **how: Any) -> str:
    """A value as YAML. `how`: parameters of PyYAML's `dump`."""
    return str(yaml.dump(value, Dumper=GoDumper, **how))


class GoDumper(yaml.SafeDumper):
    """PyYAML itself would not quote the texts `7e10` and `y`."""


class FileDumper(GoDumper):
    """For files that people read: lists are indented below their keys, lines are blocks, and nothing is an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


class FastFileDumper(yaml.CSafeDumper):
    """As FileDumper and much faster, with lists at the column of their keys."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: SafeRepresenter, value: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS & set(value) else None if _is_text(value) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _lines(dumper: SafeRepresenter, value: str) -> yaml.ScalarNode:
    if "\n" in value and not _BREAKS & set(value):
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    return _text(dumper, value)


def _is_text(value: str) -> bool:
    """Whether a text without quotes is read as itself, by Pulumi and by Kubernetes' tools."""
    try:
        return UNUSUAL_SPACE.match(value) is None and bool(resolve(value) == value == resolve_of_kubernetes(value))
    except NotPlainError:
        return False


GoDumper.add_representer(str, _text)
FileDumper.add_representer(str, _lines)
FastFileDumper.add_representer(str, _lines)
