"""The types of objects of Kubernetes."""

from collections.abc import Mapping
from typing import Any

Body = dict[str, Any]
"""An object as `kubectl get -o json` shows it. In a Pulumi program its values may be Inputs."""

ReadOnlyBody = Mapping[str, Any]
"""An object, or a part of one, for a function that only reads it."""
