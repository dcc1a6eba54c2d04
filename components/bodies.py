"""Objects as `kubectl get -o json` shows them. Pure functions."""

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, Any]


def in_namespace(body: Body, namespace: Any) -> dict[str, Any]:
    """The object in a namespace. `namespace`: a name or its Output. The object waits for an Output of another
    resource."""
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}
