"""The type of objects of Kubernetes."""

from typing import Any

Body = dict[str, Any]
"""An object as `kubectl get -o json` shows it. In a Pulumi program its values may be Inputs."""
