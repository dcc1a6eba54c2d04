"""Writes YAML that programs in Go read as the same values: Kubernetes' tools and KubeRay."""

from typing import Any

import yaml

from core.yaml_reader.scalars import NotPlainError, resolve

_BOOLEANS_OF_GO = frozenset({"y", "Y", "n", "N"})
"""Texts that sigs.k8s.io/yaml reads as booleans, as kubectl and KubeRay do, and neither PyYAML nor Pulumi."""


def go_yaml(value: Any, **how: Any) -> str:
    """A value as YAML. `how`: parameters of PyYAML's `dump`."""
    return str(yaml.dump(value, Dumper=GoDumper, **how))


class GoDumper(yaml.SafeDumper):
    """PyYAML itself would not quote the texts `7e10` and `y`."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if _is_text(value) else "'")


def _is_text(value: str) -> bool:
    """Whether a text without quotes is read as itself."""
    try:
        return resolve(value) == value and value not in _BOOLEANS_OF_GO
    except NotPlainError:
        return False


GoDumper.add_representer(str, _text)
